// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "library/preload/signals_held.h"
#include "shared/ring/control.h"
#include "shared/ring/rings.h"

namespace pnfsrdma::preload {

// This process's rings with one mount (shared/ring), and the memory that both see: 64 places for an operation each,
// which whoever waits for one has copied into, or copies out of. Never allocates; works in a signal handler. Lives as
// long as the process: an object of static storage.
class MountRing {
 public:
  static constexpr size_t kPlaces = 64;
  static constexpr size_t kPlaceSize = size_t{64} << 10;

  // False: the mount does not let this process in. Once.
  bool connect(const ring::Find& found);
  bool is_gone() const { return gone_.load(std::memory_order_acquire); }

  // In the mount's words. A negative errno: it takes none for it.
  int64_t attach(int file);

  struct Move {
    ring::Opcode opcode = ring::Opcode::kRead;
    uint32_t file = 0;
    uint64_t offset = 0;
    size_t length = 0;  // of all of `vector`, kPlaceSize at most
    const iovec* vector = nullptr;
    int count = 0;
  };
  // Bytes, or a negative errno, or ring::kUseDescriptor. Only if it is all of them something is known to have been done
  // as a whole: whatever else it is, the descriptor may do the same once more.
  int64_t run(const Move& move);

  // In a child: what the parent has is not ours.
  void abandon();

 private:
  // Who waits for a place: kLeads is told to whoever is to look at the ring next.
  enum : uint32_t { kIdle, kWaits, kLeads, kDone };
  struct alignas(64) Place {
    std::atomic<uint32_t> word = kIdle;
    std::atomic<int64_t> result = 0;
  };

  int take_place();
  void give_back(int place) { used_.fetch_and(~(uint64_t{1} << place), std::memory_order_release); }
  void submit(const ring::Submission& submission);
  int64_t wait(Place& place, SignalsHeld& signals);
  void lead(Place& place);
  void take();
  bool wait_for_event();
  bool has_its_descriptors();
  // `descriptor` may be somebody else's by now: not an event any more.
  bool is_event(int descriptor);
  void hand_over(const Place& from);
  void fail() { gone_.store(true, std::memory_order_release); }
  bool say_hello(const ring::Find& found);
  bool share_memory();

  int socket_ = -1, doorbell_ = -1, event_ = -1;
  uint64_t socket_inode_ = 0;
  uint64_t event_device_ = 0, event_inode_ = 0;  // that the kernel gives all events
  ring::Secret secret_{};
  std::byte* memory_ = nullptr;
  uint32_t memory_number_ = 0;
  alignas(ring::ProgramRings) std::byte rings_room_[sizeof(ring::ProgramRings)]{};
  ring::ProgramRings& rings() { return *std::launder(reinterpret_cast<ring::ProgramRings*>(rings_room_)); }

  std::atomic<bool> gone_ = false;
  std::atomic<uint64_t> used_ = 0;
  std::atomic<bool> submitting_ = false, reaping_ = false;
  uint64_t rings_owed_ =
      0;  // under reaping_: the mount has said that it rings, and the event does not show it yet
  std::array<Place, kPlaces> places_;
};

}  // namespace pnfsrdma::preload
