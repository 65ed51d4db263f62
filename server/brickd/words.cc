// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/words.h"

#include <atomic>
#include <bit>
#include <span>

namespace pnfsrdma::brick {
namespace {

static_assert(std::endian::native == std::endian::little, "words lie in memory as the processor has them");
static_assert(std::atomic_ref<uint64_t>::is_always_lock_free);

constexpr size_t kWord = sizeof(uint64_t);

// Returns what it was.
uint64_t change_word(std::byte* memory, const ChangeWordCall& call) {
  const std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(memory));
  switch (call.change) {
    case WordChange::kStore:
      return word.exchange(call.operand);
    case WordChange::kFetchAndAdd:
      return word.fetch_add(call.operand);
    case WordChange::kCompareAndSwap:
      break;
  }
  uint64_t before = call.expected;
  word.compare_exchange_strong(before, call.operand);
  return before;
}

}  // namespace

// What was made is flushed under the verifier of before it: a flush that has failed meanwhile may have lost
// it. Who asks again has it flushed again.
ChangeWordReply Words::change(const ChangeWordCall& call) {
  ChangeWordReply reply{.id = call.id};
  const auto made = record_->once(call, [&] { return make(call); });
  if (!made) {
    reply.status = made.error();
  } else {
    reply.before = made->before;
    if (call.durable && !gate_.persist_under(std::span(&made->word, 1), made->verifier))
      reply.status = WordStatus::kNotDurable;
  }
  reply.verifier = gate_.verifier();
  return reply;
}

ReplayRecord::Outcome Words::make(const ChangeWordCall& call) {
  const Verifier verifier = gate_.verifier();
  const auto use = exposures_.use(call.grant);
  if (!use || !use->writable) return std::unexpected(WordStatus::kUnknownGrant);
  if (call.offset > use->memory.size() || use->memory.size() - call.offset < kWord)
    return std::unexpected(WordStatus::kInvalid);
  std::byte* const word = use->memory.data() + call.offset;
  if (reinterpret_cast<uintptr_t>(word) % kWord != 0) return std::unexpected(WordStatus::kInvalid);
  return ReplayRecord::Change{change_word(word, call), ByteSpan(word, kWord), verifier};
}

}  // namespace pnfsrdma::brick
