// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "shared/base/bytes.h"
#include "shared/ring/entries.h"

namespace pnfsrdma::ring {

inline constexpr uint32_t kDepthMax = 4096;

// At the beginning of the shared memory; then come `depth` submissions, then `depth` completions. An index counts up
// for ever; its place is its lowest bits. Who writes which: the names say it. Each has a cache line of its own.
struct RingsHeader {
  struct alignas(64) Word {
    std::atomic<uint32_t> value = 0;
  };
  Word submitted;       // by the program
  Word taken;           // by the mount
  Word completed;       // by the mount
  Word reaped;          // by the program
  Word mount_sleeps;    // set by the mount, which wants its doorbell rung
  Word program_sleeps;  // set by the program, which wants its own rung
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// `depth` rounded up to a power of two, which the indices need; 0 or more than kDepthMax has none.
std::optional<uint32_t> rounded_depth(uint64_t depth);
// Bytes of the shared memory of rings of that (rounded) depth, whole pages.
size_t rings_size(uint32_t depth);

// Where everything lies in memory of rings_size(depth) bytes. A value.
class RingsView {
 public:
  RingsView(MutableByteSpan memory, uint32_t depth);

  RingsHeader& header() const { return *header_; }
  Submission& submission(uint32_t index) const { return submissions_[index & mask_]; }
  Completion& completion(uint32_t index) const { return completions_[index & mask_]; }
  uint32_t depth() const { return mask_ + 1; }

 private:
  RingsHeader* header_;
  Submission* submissions_;
  Completion* completions_;
  uint32_t mask_;
};

// The program's side. One thread at a time submits, one at a time reaps.
class ProgramRings {
 public:
  ProgramRings(MutableByteSpan memory, uint32_t depth) : view_(memory, depth) {}

  // False: the ring is full. The mount sees it at publish().
  bool submit(const Submission& submission);
  // True: the mount sleeps; ring its doorbell. Once for each sleep.
  [[nodiscard]] bool publish();
  std::optional<Completion> reap();
  // Before the program sleeps on its event descriptor: false when there is something to reap. Afterwards, in either
  // case, awake(): true when the descriptor was written to, or will be at once.
  [[nodiscard]] bool may_sleep();
  bool awake();

 private:
  const RingsView view_;
  uint32_t submitted_ = 0;
  uint32_t reaped_ = 0;
};

// The mount's side. One thread. Nothing the program does to the memory leads out of it.
class MountRings {
 public:
  // The mount has zeroed the memory.
  MountRings(MutableByteSpan memory, uint32_t depth) : view_(memory, depth) {}

  // A copy of the next submission. None: there is none, or there are as many on their way as the completion ring has
  // places.
  std::optional<Submission> take();
  // One of what was taken.
  void complete(const Completion& completion);
  // Behind some complete(): true when the program sleeps; ring its doorbell. Once for each sleep.
  [[nodiscard]] bool publish();
  // Before the mount sleeps on its doorbell: false when there is something to take. Afterwards awake().
  [[nodiscard]] bool may_sleep();
  void awake();
  uint32_t depth() const { return view_.depth(); }

 private:
  bool anything_to_take() const;

  const RingsView view_;
  uint32_t taken_ = 0;
  uint32_t completed_ = 0;
};

}  // namespace pnfsrdma::ring
