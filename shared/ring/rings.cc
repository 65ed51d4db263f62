// SPDX-License-Identifier: Apache-2.0
#include "shared/ring/rings.h"

#include <bit>
#include <cstring>
#include <new>

#include "shared/base/check.h"

// A side that goes to sleep says so, and looks again; the other one publishes, and looks whether it sleeps. Both with a
// full fence between, so that one of them sees the other. Who rings takes the word back: nobody rings twice for one
// sleep, and who awakes knows whether it was rung. An operation costs no system call while both are awake.
namespace pnfsrdma::ring {
namespace {

constexpr size_t kPage = 4096;

size_t submissions_at() {
  return sizeof(RingsHeader);
}

size_t completions_at(uint32_t depth) {
  return submissions_at() + depth * sizeof(Submission);
}

bool take_sleep(RingsHeader::Word& word) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return word.value.load(std::memory_order_relaxed) != 0 && word.value.exchange(0) != 0;
}

void say_sleeps(RingsHeader::Word& word) {
  word.value.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace

std::optional<uint32_t> rounded_depth(uint64_t depth) {
  if (depth == 0 || depth > kDepthMax) return std::nullopt;
  return std::bit_ceil(static_cast<uint32_t>(depth));
}

size_t rings_size(uint32_t depth) {
  return (completions_at(depth) + depth * sizeof(Completion) + kPage - 1) / kPage * kPage;
}

RingsView::RingsView(MutableByteSpan memory, uint32_t depth)
    : header_(std::launder(reinterpret_cast<RingsHeader*>(memory.data()))),
      submissions_(std::launder(reinterpret_cast<Submission*>(memory.data() + submissions_at()))),
      completions_(std::launder(reinterpret_cast<Completion*>(memory.data() + completions_at(depth)))),
      mask_(depth - 1) {
  CHECK(std::has_single_bit(depth) && memory.size() >= rings_size(depth));
}

bool ProgramRings::submit(const Submission& submission) {
  const uint32_t taken = view_.header().taken.value.load(std::memory_order_acquire);
  if (submitted_ - taken >= view_.depth()) return false;
  view_.submission(submitted_++) = submission;
  return true;
}

bool ProgramRings::publish() {
  view_.header().submitted.value.store(submitted_, std::memory_order_release);
  return take_sleep(view_.header().mount_sleeps);
}

std::optional<Completion> ProgramRings::reap() {
  if (view_.header().completed.value.load(std::memory_order_acquire) == reaped_) return std::nullopt;
  const Completion completion = view_.completion(reaped_++);
  view_.header().reaped.value.store(reaped_, std::memory_order_release);
  return completion;
}

bool ProgramRings::may_sleep() {
  say_sleeps(view_.header().program_sleeps);
  return view_.header().completed.value.load(std::memory_order_acquire) == reaped_;
}

bool ProgramRings::awake() {
  return view_.header().program_sleeps.value.exchange(0) == 0;
}

bool MountRings::anything_to_take() const {
  const RingsHeader& header = view_.header();
  // Places of the completion ring that are in use, or will be: a program that says otherwise harms its own completions,
  // and nothing else.
  const uint32_t reaped = header.reaped.value.load(std::memory_order_acquire);
  if (taken_ - reaped >= view_.depth() || taken_ - completed_ >= view_.depth()) return false;
  const uint32_t submitted = header.submitted.value.load(std::memory_order_acquire);
  return submitted != taken_ && submitted - taken_ <= view_.depth();
}

std::optional<Submission> MountRings::take() {
  if (!anything_to_take()) return std::nullopt;
  // Once, whole, and before anything of it is looked at: the program may change it meanwhile.
  Submission submission;
  std::memcpy(&submission, &view_.submission(taken_), sizeof submission);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  view_.header().taken.value.store(++taken_, std::memory_order_release);
  return submission;
}

void MountRings::complete(const Completion& completion) {
  view_.completion(completed_++) = completion;
}

bool MountRings::publish() {
  view_.header().completed.value.store(completed_, std::memory_order_release);
  return take_sleep(view_.header().program_sleeps);
}

bool MountRings::may_sleep() {
  say_sleeps(view_.header().mount_sleeps);
  if (!anything_to_take()) return true;
  awake();
  return false;
}

void MountRings::awake() {
  view_.header().mount_sleeps.value.store(0, std::memory_order_relaxed);
}

}  // namespace pnfsrdma::ring
