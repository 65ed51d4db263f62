// SPDX-License-Identifier: Apache-2.0
#include "library/preload/mount_ring.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <cstring>

// One of those who wait looks at the rings and sleeps on their event, the others sleep on their places. Who has what it
// waited for names the next one.
namespace pnfsrdma::preload {
namespace {

// So long a signal waits at most, when a brick is slow to answer.
constexpr timespec kTurn{0, 100'000'000};

void futex_wait(std::atomic<uint32_t>& word, uint32_t value) {
  (void)kernel(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &kTurn, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word) {
  (void)kernel(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// Between the memory of the program and a place. `to_place`, or from it.
void copy(const iovec* vector, int count, std::byte* place, size_t length, bool to_place) {
  for (int i = 0; i < count && length > 0; ++i) {
    const size_t part = std::min(vector[i].iov_len, length);
    if (part == 0) continue;
    to_place ? std::memcpy(place, vector[i].iov_base, part) : std::memcpy(vector[i].iov_base, place, part);
    place += part;
    length -= part;
  }
}

}  // namespace

int64_t MountRing::attach(int file) {
  ring::Attach attach{.secret = secret_};
  const long result = kernel(SYS_ioctl, file, ring::kAttach, &attach);
  return result < 0 ? result : static_cast<int64_t>(attach.file);
}

int64_t MountRing::run(const Move& move) {
  if (!has_its_descriptors()) fail();
  const int number = take_place();
  if (number < 0) return ring::kUseDescriptor;
  Place& place = places_[static_cast<size_t>(number)];
  const uint64_t at = static_cast<uint64_t>(number) * kPlaceSize;
  const bool is_read = move.opcode == ring::Opcode::kRead;
  // With signals: what a handler is told of a bad address is as ever.
  if (!is_read) copy(move.vector, move.count, memory_ + at, move.length, true);
  int64_t result = 0;
  {
    SignalsHeld signals;
    place.word.store(kWaits, std::memory_order_relaxed);
    submit({.opcode = static_cast<uint32_t>(move.opcode),
            .file = move.file,
            .memory = memory_number_,
            .memory_offset = at,
            .length = move.length,
            .offset = move.offset,
            .user_data = static_cast<uint64_t>(number)});
    result = wait(place, signals);
  }
  if (is_read && result > 0)
    copy(move.vector, move.count, memory_ + at, std::min(static_cast<size_t>(result), move.length), false);
  // A mount that has put us out may still be at it.
  if (!is_gone()) give_back(number);
  return result;
}

// Negative: there is none.
int MountRing::take_place() {
  uint64_t used = used_.load(std::memory_order_relaxed);
  while (~used != 0 && !is_gone()) {
    const int place = std::countr_one(used);
    if (used_.compare_exchange_weak(used, used | uint64_t{1} << place, std::memory_order_acquire))
      return place;
  }
  return -1;
}

// The ring has room for each place.
void MountRing::submit(const ring::Submission& submission) {
  while (submitting_.exchange(true, std::memory_order_acquire)) (void)kernel(SYS_sched_yield);
  const bool mount_sleeps = rings().submit(submission) && rings().publish();
  submitting_.store(false, std::memory_order_release);
  if (!mount_sleeps) return;
  const uint64_t one = 1;
  if (!is_event(doorbell_) || kernel(SYS_write, doorbell_, &one, sizeof one) != sizeof one) fail();
}

// A program that closes all that it does not know has closed these, too, and may have files of its own there by now. A
// socket's number is nobody else's.
bool MountRing::has_its_descriptors() {
  struct stat status{};
  return kernel(SYS_fstat, socket_, &status) == 0 && S_ISSOCK(status.st_mode) &&
         status.st_ino == socket_inode_;
}

bool MountRing::is_event(int descriptor) {
  struct stat status{};
  return kernel(SYS_fstat, descriptor, &status) == 0 && status.st_dev == event_device_ &&
         status.st_ino == event_inode_;
}

int64_t MountRing::wait(Place& place, SignalsHeld& signals) {
  for (;;) {
    uint32_t word = place.word.load(std::memory_order_acquire);
    if (word == kDone) return place.result;
    if (is_gone()) return ring::kUseDescriptor;
    if (!reaping_.exchange(true, std::memory_order_acquire)) {
      if (word == kWaits) place.word.compare_exchange_strong(word, kLeads);
      lead(place);
      reaping_.store(false, std::memory_order_release);
      place.word.compare_exchange_strong(word = kLeads, kWaits);
      hand_over(place);
    } else {
      if (word == kLeads) place.word.compare_exchange_strong(word, kWaits);
      futex_wait(place.word, kWaits);
    }
    if (place.word.load(std::memory_order_acquire) != kDone) signals.let_in();
  }
}

// Under reaping_: until it is done, or for a turn.
void MountRing::lead(Place& place) {
  for (bool in_time = true; in_time;) {
    take();
    if (place.word.load(std::memory_order_relaxed) == kDone) return;
    if (rings().may_sleep()) in_time = wait_for_event() && !is_gone();
    if (is_gone()) return;
    // Before the ring is looked at: what comes behind that rings again.
    if (rings().awake()) ++rings_owed_;
    uint64_t rung = 0;
    if (rings_owed_ > 0 && !is_event(event_)) fail();
    if (rings_owed_ > 0 && !is_gone() && kernel(SYS_read, event_, &rung, sizeof rung) > 0)
      rings_owed_ -= std::min(rings_owed_, rung);
  }
  take();
}

void MountRing::take() {
  while (const auto completion = rings().reap()) {
    if (completion->user_data >= kPlaces) continue;
    Place& place = places_[completion->user_data];
    place.result.store(completion->result, std::memory_order_relaxed);
    if (place.word.exchange(kDone, std::memory_order_acq_rel) == kWaits) futex_wake(place.word);
  }
}

// False: nothing came, or nothing ever will.
bool MountRing::wait_for_event() {
  std::array<pollfd, 2> watched{{{event_, POLLIN, 0}, {socket_, POLLRDHUP, 0}}};
  timespec turn = kTurn;
  const long ready = kernel(SYS_ppoll, watched.data(), watched.size(), &turn, nullptr, size_t{8});
  if (ready > 0 && watched[1].revents == 0 && has_its_descriptors()) return true;
  if (ready <= 0 && has_its_descriptors()) return false;
  take();
  fail();
  return false;
}

void MountRing::hand_over(const Place& from) {
  for (uint64_t used = used_.load(std::memory_order_acquire); used != 0; used &= used - 1) {
    Place& next = places_[static_cast<size_t>(std::countr_zero(used))];
    uint32_t word = kWaits;
    if (&next == &from) continue;
    if (!next.word.compare_exchange_strong(word, kLeads)) continue;
    futex_wake(next.word);
    return;
  }
}

}  // namespace pnfsrdma::preload
