// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "shared/base/sync.h"
#include "shared/initiator/file/all_files.h"
#include "shared/initiator/file/file_io.h"
#include "shared/initiator/file/mount.h"

namespace pnfsrdma::initiator {

// The files a mount has data state of, by file handle: the open ones, and closed ones whose layouts wait for
// the next open. A file stays the same object until nobody has it open and no layout of it is held: so a
// LAYOUTRETURN on its way can never hit a layout that a newer open has just got. Thread-safe.
class FileTable final : public AllFiles {
 public:
  using Entry = std::shared_ptr<FileIo>;

  FileTable(const Mount& mount, size_t closed_max) : mount_(mount), closed_max_(closed_max) {}

  // The file, made if need be, with this source of stateids.
  Entry open(const nfs4::FileHandle& handle, OpenStateSource& source, uint64_t size);
  // Null: no state of that file.
  Entry find(const nfs4::FileHandle& handle);
  std::vector<Entry> all();
  // AllFiles.
  void commit_growth() override;
  void commit_growth_soon() override;
  void flush_unstable_soon() override;
  void flush_held_later() override;
  void closed(FileState& file) override;
  // Returns layouts of files that nobody has open, oldest first, until at most `keep` such files are left;
  // but what is not flushed on a device that does not answer is left for the next time.
  void shrink(size_t keep);
  // Flushes what was unflushed the last time, too; but not on a device that does not answer. Closed files
  // that were only kept for that are forgotten.
  void flush_old();
  // Flushes every file that keeps copies of what went through the MDS.
  void flush_unstable();
  void flush_held();
  // Tells the server what was done by the layouts that are held. Waits for nothing.
  void tell_activity();

 private:
  static bool is_open(const Entry& entry);
  void forget_if_idle(const nfs4::FileHandle& handle);

  const Mount mount_;
  const size_t closed_max_;
  Mutex mutex_;
  std::map<nfs4::FileHandle, Entry> files_;
  size_t closed_count_ = 0;  // an estimate: reopened files still count until the next shrink()
  bool too_many_ = false;    // that are not flushed: said
  uint64_t next_serial_ = 1;
  bool shrinking_ = false;
  // Tasks that wait for their thread.
  std::atomic<bool> commit_growth_posted_ = false, flush_unstable_posted_ = false, flush_held_posted_ = false;
};

}  // namespace pnfsrdma::initiator
