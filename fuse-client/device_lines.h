// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/clock.h"
#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {

// The requests that wait for a device. When as many workers as one may keep are held up at a device, it is
// full: what else comes for it is parked, in a line of its own and in its order, and holds no worker. A
// worker that leaves takes the first of the line with it, so that never more of them are at a line than the
// device may keep, and a line is never left alone. Who leaves soon has seen that the device answers: from
// then on what comes goes straight on, and the line is worked off beside. A request is only ever parked
// while its caller waits for the answer, so nothing that POSIX puts in order is put out of it. No I/O here.
// Thread-safe.
class DeviceLines {
 public:
  // Pointers that tell them apart. No device: nobody knows what the request waits for.
  using Device = const void*;
  using Worker = const void*;
  struct Limits {
    size_t workers_per_device = 1;
    size_t workers_nowhere = 1;  // with no device
    size_t requests = 0;         // parked, and what they keep:
    size_t bytes = 0;
  };
  struct Parked {
    std::vector<std::byte> message;  // as the kernel sent it
    pid_t caller = 0;
    SteadyTime since;
  };

  explicit DeviceLines(const Limits& limits) : limits_(limits) {}

  // False: no worker is held up, every request may go on. Takes no lock.
  bool any() const { return any_.load(std::memory_order_acquire); }
  // The worker has been at a request for long, and that waits for this device. Until left().
  void held_up(Worker worker, Device device);
  enum class Admission {
    kGo,
    kParked,
    kNoRoom,  // it should be parked, but too much is
  };
  // Before a request begins that may wait for these devices; none: for who knows what.
  Admission admit(std::span<const Device> devices, ByteSpan message, pid_t caller, SteadyTime now);
  // The worker is through with the request that held it up, or with the one it took then: the next to serve,
  // if any. `soon`: it took no longer than it should.
  std::optional<Parked> left(Worker worker, bool soon);

  // For those whose caller may be gone: the next ones in turn, at most so many.
  struct Look {
    uint64_t number;
    pid_t caller;
    SteadyTime since;
  };
  std::vector<Look> look(size_t count);
  // Out of its line. None: it has left already.
  std::optional<Parked> take(uint64_t number);
  // All that are parked; from now on nothing is.
  std::vector<Parked> close();

  size_t parked() const;
  size_t parked_bytes() const;

 private:
  struct Line {
    std::set<Worker> workers;
    std::set<uint64_t> parked;  // by number: the first came first
    bool full = false;
  };
  struct Place {
    Device device;
    Parked request;
  };
  using Lines = std::map<Device, Line>;

  size_t workers_max(Device device) const;
  Lines::iterator full_one(std::span<const Device> devices);
  Parked remove(uint64_t number);
  void settle(Lines::iterator line);

  const Limits limits_;
  std::atomic<bool> any_ = false;
  mutable Mutex mutex_;
  // Guarded by mutex_. A line stays while a worker is at it.
  Lines lines_;
  std::map<Worker, Device> places_;
  std::map<uint64_t, Place> parked_;
  size_t bytes_ = 0;
  uint64_t next_ = 1;
  uint64_t looked_at_ = 0;
  bool closed_ = false;
};

}  // namespace pnfsrdma::fuse_client
