// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "shared/base/sync.h"
#include "shared/initiator/file/parts.h"

namespace pnfsrdma::initiator {

// The files a mount has data state of, by file handle: the open ones, and closed ones whose layouts wait for
// the next open. A file stays the same object until nobody has it open and no layout of it is held: so a
// LAYOUTRETURN on its way can never hit a layout that a newer open has just got. Thread-safe.
class FileTable {
 public:
  using Entry = std::shared_ptr<FileIo>;

  FileTable(Services& services, size_t closed_max) : services_(services), closed_max_(closed_max) {}

  // The file, made if need be, with this source of stateids.
  Entry open(const nfs4::FileHandle& handle, OpenStateSource& source, uint64_t size);
  // Null: no state of that file.
  Entry find(const nfs4::FileHandle& handle);
  std::vector<Entry> all();
  // The last close: the source is not asked any more. Layouts over the limit are returned in the background.
  void closed(FileIo::Parts& parts);
  // Returns layouts of files that nobody has open, oldest first, until at most `keep` such files are left;
  // but what is not flushed on a device that does not answer is left for the next time.
  void shrink(size_t keep);
  // Flushes what was unflushed the last time, too; but not on a device that does not answer. Closed files
  // that were only kept for that are forgotten.
  void flush_old();
  // Flushes every file that keeps copies of what went through the MDS.
  void flush_unstable();
  // Starts to commit what all files have grown by, so that less has to be kept.
  void commit_growth();

 private:
  static bool is_open(const Entry& entry);
  void forget_if_idle(const nfs4::FileHandle& handle);

  Services& services_;
  const size_t closed_max_;
  Mutex mutex_;
  std::map<nfs4::FileHandle, Entry> files_;
  size_t closed_count_ = 0;  // an estimate: reopened files still count until the next shrink()
  bool too_many_ = false;    // that are not flushed: said
  uint64_t next_serial_ = 1;
  bool shrinking_ = false;
};

}  // namespace pnfsrdma::initiator
