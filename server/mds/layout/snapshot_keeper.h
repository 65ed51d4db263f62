// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "server/mds/layout/file_io.h"
#include "server/mds/layout/layouts.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/space/file_space.h"
#include "server/mds/space/inode_queue.h"
#include "shared/base/clock.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// Nobody is granted a layout to write while a snapshot waits for those who have one. In each such time they return an
// eighth of the files that are left, then a quarter, half, and all: somebody with thousands of files has longer, and a
// slow one does not keep everybody waiting. When that was the last, it waits as long for what the server is doing with
// the memory of files.
inline constexpr Milliseconds kStillPatience{2000};
inline constexpr size_t kStillSteps = 4;

// Takes snapshots of the whole tree and deletes them (layout/README.md). Control loop only.
class SnapshotKeeper {
 public:
  SnapshotKeeper(EventLoop& loop, const Clock& clock, Namespace& names, FileSpace& space, InodeQueue& queue,
                 Layouts& layouts, FileIo& io);
  ~SnapshotKeeper();
  SnapshotKeeper(const SnapshotKeeper&) = delete;
  SnapshotKeeper& operator=(const SnapshotKeeper&) = delete;

  // What the last run did not finish: snapshots that are not complete, or were being deleted. Before the loop runs,
  // when the layouts of the last run are known. Blocks.
  Result<> recover();

  // `done` comes once, later or from inside the call.
  using Taken = std::function<void(Result<SnapshotNumber>)>;
  using Done = std::function<void(Result<>)>;

  // Told of each layout that is revoked, before it is.
  using Revoking = Layouts::Told;

  // What was acknowledged before the call is in it, durable by now, and nothing that is written behind `done`.
  // Who writes is asked to give his layouts back; when too few came in kStillPatience, or a brick
  // is away, it fails (ETIMEDOUT). With `revoking` who has not given them back loses them then, and all begins again,
  // once. On any error nothing else has changed. EINVAL, EEXIST, EMFILE as of Snapshots::begin; EBUSY:
  // another one is being taken; ENOSPC, EIO, EAGAIN.
  void take(std::string_view name, Taken done, SnapshotClass schedule = SnapshotClass::kNone,
            Revoking revoking = nullptr);
  // Nobody sees it any more when `done` gets its answer; its memory is freed behind that. ENOENT, EAGAIN, EIO.
  void remove(std::string_view name, Done done);
  // Bytes of memory that only snapshots have.
  uint64_t held() const { return space_.dead_bytes(); }

 private:
  struct Taking {
    std::string name;
    Taken done;
    SnapshotClass schedule = SnapshotClass::kNone;
    Revoking revoking;  // null: nobody loses anything, or those who do have lost it
    SnapshotNumber number = 0;
    size_t steps = 0;    // of patience
    size_t written = 0;  // files that somebody might write when it was last looked
  };

  void be_patient();
  void out_of_patience();
  void give_up();
  std::function<void(bool)> in_this_try(std::function<void()> then);
  void stop_writers();
  void hold();
  void look();
  void copy();
  void copied(const Result<>& made);
  void tell_ready();
  void again();
  void end_try();
  void resume();
  void resume_rest();
  void end(Result<SnapshotNumber> outcome);
  void finish_removal(SnapshotNumber number);
  void forget(SnapshotNumber number);
  void free_memory();
  void later(Milliseconds delay, std::function<void()> task) {
    loop_.after(delay, lifetime_.guard(std::move(task)));
  }

  EventLoop& loop_;
  const Clock& clock_;
  Namespace& names_;
  KeyValueStore& store_;
  FileSpace& space_;
  InodeQueue& queue_;
  Layouts& layouts_;
  FileIo& io_;
  std::optional<Taking> taking_;
  uint64_t try_ = 0;                      // the number of the one under way, or between two
  EventLoop::TimerId patience_ = 0;       // until it is copied
  EventLoop::TimerId hold_patience_ = 0;  // the same, of one try
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
