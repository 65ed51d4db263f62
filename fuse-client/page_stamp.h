// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>

#include "shared/base/clock.h"

namespace pnfsrdma::fuse_client {

// What the server has said of a file's change attribute.
struct ChangeAnswer {
  uint64_t change = 0;
  SteadyTime asked_at{};
  SteadyTime heard_at{};
  // The COMPOUND that brought it has changed the file itself, by one operation of which it is certain that it
  // moves the change attribute.
  bool of_own_change = false;
};

// Who brings the kernel to ask: a read(2) of its pages, stat(2), or a name on some path.
enum class PageAsker { kReader, kStat, kName };

// The modification time by which the kernel judges its pages of one file. With FUSE_AUTO_INVAL_DATA they go
// when the attributes behind a read show another time than those of before; so it is told one that moves only
// when another host has changed the file, and the file's own time where somebody asks for it. A change is ours
// only when that is certain: the change attribute moved by one from what was known before our operation was
// sent, and that operation moved it. Each change moves it by one at least, so there was no other. In doubt it
// is another host's. Not thread-safe.
class PageStamp {
 public:
  // `modified`: the file's time at the server.
  void take_in(const ChangeAnswer& answer, timespec modified);
  // The pages may be worth nothing: written past them, or lost.
  void doubt();
  // The kernel has none, and does not know the file: it may be told the file's time.
  void dropped(timespec modified);
  timespec time() const { return time_; }
  // Moves with each change that was not ours.
  uint64_t foreign_changes() const { return foreign_changes_; }

  // What the kernel is told in place of `modified`, of a file of `size` bytes: it does not believe that for
  // long, and asks again at each read. None: it is told `modified`, because that is time(); because somebody
  // looks at a file of whose foreign change it has not been told yet; or because readers have asked so often
  // since the last change, of ours too, that to read the file once more is cheaper. time() is `modified` from
  // there on. That is for readers only: to drop pages waits for those that wait for a brick, and no stat(2) or
  // path has to.
  std::optional<timespec> instead_of(timespec modified, uint64_t size, PageAsker asker);

 private:
  void change_to(timespec time);

  std::optional<uint64_t> change_;
  SteadyTime heard_at_{};  // change_
  SteadyTime asked_at_{};
  timespec time_{}, before_{};
  uint64_t foreign_changes_ = 0;
  uint64_t told_ = 0;       // of them
  timespec modified_{};     // the file's time when that was asked for last
  uint64_t questions_ = 0;  // since it changed
};

bool is_same_time(timespec one, timespec other);

}  // namespace pnfsrdma::fuse_client
