// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <vector>

#include "shared/initiator/file/background.h"
#include "shared/initiator/file/file_state.h"
#include "shared/initiator/file/io.h"
#include "shared/initiator/file/pending_layout.h"

namespace pnfsrdma::initiator {

// Gets the layouts of one file: what to ask for, ahead of I/O that goes on in sequence, and how long not to
// ask when the server refuses. One LAYOUTGET of a file at a time (LayoutCache). Nothing is posted and nothing
// written here. Waits for the MDS. Thread-safe.
class LayoutGetter {
 public:
  LayoutGetter(FileState& file, DeviceTable& devices, Background& background, Told& told);

  // A layout is worth asking for; while it is not, I/O goes through the MDS.
  bool layout_wanted(Direction direction, uint64_t offset, uint64_t length) const;
  // True: a layout that covers `offset` may be there now. False: go through the MDS.
  bool acquire(Direction direction, uint64_t offset, uint64_t length);
  // The file is appended to at `offset`, and the server was asked where it ends. From the fourth time on since it
  // was opened each LAYOUTGET asks whether what lies behind is ours alone; where the layout is held already, one
  // of its own does now and then.
  void appended(uint64_t offset);
  // The last open ends.
  void closed();
  // Behind an I/O: has another thread get what comes next.
  void prefetch_behind(const LayoutPin& pin, Direction direction);
  // FileIo::take_layout().
  void take(const PendingLayout& pending, const nfs4::LayoutGetResult& result, std::optional<uint64_t> size);

  // FileIo::set_thresholds().
  void set_thresholds(uint64_t read_size, uint64_t write_size);
  // The server has asked for that.
  bool return_on_close() const { return return_on_close_; }
  // Where a layout has led last; null: there was none.
  Device* last_device() const { return last_device_; }

 private:
  // Who appends a little and closes asks for nothing: others may do the same in turns.
  static constexpr uint32_t kAppendsForEnd = 4;

  nfs4::LayoutGetArguments what_to_ask(Direction direction, uint64_t offset, uint64_t length,
                                       const LayoutCache::Getting& getting) const;
  MetadataResult<> get_layout(Direction direction, nfs4::LayoutGetArguments wanted,
                              const LayoutCache::Getting& getting, uint64_t epoch);
  void refused(const MetadataError& error);
  void ask_for_end(uint64_t offset);
  // `hole_era`: HoleTrust::era() before it was asked for.
  std::vector<LayoutSegment> segments_of(const nfs4::LayoutGetResult& granted, uint32_t hole_era);
  void prefetch(Direction direction, uint64_t offset);

  FileState& file_;
  DeviceTable& devices_;
  Background& background_;
  Told& told_;
  std::atomic<uint64_t> threshold_read_size_, threshold_write_size_;
  std::atomic<Device*> last_device_{nullptr};
  std::atomic<bool> prefetching_{false};
  std::atomic<bool> return_on_close_{false};
  std::atomic<uint32_t> appends_{0};        // that were asked for, since the file was opened
  std::atomic<uint32_t> asked_appends_{0};  // since the end was asked for in vain, or was ours
  std::atomic<uint32_t> next_ask_{kAppendsForEnd};
};

}  // namespace pnfsrdma::initiator
