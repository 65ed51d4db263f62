// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/owned.h"

namespace pnfsrdma::fuse_client {

// Those who have connected and not said yet who they are (kHello): a socket each, and nothing else. Anybody on the host
// gets here, so there are few places, and they are not for long; where they are full, whoever has most of them makes
// room: a program that says its kHello at once is heard, however many others never do. Without I/O but that it closes
// sockets. The ring thread's.
class Arrivals {
 public:
  static constexpr size_t kMax = 256;
  static constexpr size_t kOfAUserMax = 64;
  static constexpr Milliseconds kPatience = std::chrono::seconds(5);

  struct Arrival {
    FileDescriptor socket;
    uid_t user = 0;
    SteadyTime until;
  };

  // Who has to go before one of that user may come: its oldest, or the oldest of whoever has most. None: there is room.
  std::optional<uint64_t> in_the_way_of(uid_t user) const;
  // There is room.
  void add(uint64_t id, FileDescriptor socket, uid_t user, SteadyTime now);
  // Null: it is not here (any more).
  const Arrival* find(uint64_t id) const;
  // Is here.
  Arrival take(uint64_t id);
  // Closes the sockets of those who have said nothing for too long: how many.
  size_t expire(SteadyTime now);
  // When expire() has something to do. None: nobody is here.
  std::optional<SteadyTime> next_expiry() const;
  size_t size() const { return waiting_.size(); }

 private:
  size_t count_of(uid_t user) const;
  uid_t most() const;
  uint64_t oldest_of(uid_t user) const;

  std::map<uint64_t, Arrival> waiting_;  // ids grow: the first has been here longest
};

}  // namespace pnfsrdma::fuse_client
