// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/zeroer.h"

#include <algorithm>

#include "server/brickd/limits.h"
#include "shared/base/log.h"

namespace pnfsrdma::brick {

Zeroer::Zeroer(EventLoop& loop, Pool& pool, FlushGate& gate, Committer& committer)
    : loop_(loop), pool_(pool), gate_(gate), committer_(committer), executor_(loop, "brick-zero") {
  wake();
}

Zeroer::~Zeroer() {
  stopping_ = true;
  loop_.cancel(timer_);
}

void Zeroer::wake() {
  if (busy_ || committer_.failed()) return;
  if (const auto block = pool_.table().next_to_zero(loop_.now())) return zero(*block);
  schedule();
}

void Zeroer::schedule() {
  loop_.cancel(timer_);
  const auto ripe = pool_.table().next_ripe();
  if (!ripe) return;
  const auto wait = std::chrono::ceil<Milliseconds>(*ripe - loop_.now());
  timer_ = loop_.after(std::max(wait, Milliseconds(0)), [this] { wake(); });
}

void Zeroer::zero(uint64_t block) {
  busy_ = true;
  auto result = std::make_shared<Result<>>();
  executor_.run([this, result, memory = pool_.block(block)] { *result = zero_durably(memory); },
                [this, block, result] { finish(block, *result); });
}

// In pieces, so that neither a clean shutdown nor a client's flush waits for long.
Result<> Zeroer::zero_durably(MutableByteSpan memory) {
  const Verifier verifier = gate_.verifier();
  while (!memory.empty()) {
    if (stopping_) return fail(ECANCELED, "zeroing");
    const MutableByteSpan piece = memory.first(std::min<size_t>(memory.size(), kZeroPieceBytes));
    pool_.persistence().zero(piece);
    const ByteSpan range = piece;
    TRY(gate_.persist_under(std::span(&range, 1), verifier));
    memory = memory.subspan(piece.size());
  }
  return {};
}

void Zeroer::finish(uint64_t block, const Result<>& result) {
  if (!result) {
    log_error("brick", "zeroing-failed block={} error=\"{}\"", block, result.error().to_string());
    pool_.table().give_up(block, loop_.now());
    busy_ = false;
    return schedule();
  }
  committer_.submit(
      [this, block] {
        pool_.table().mark_clean(block);
        return Committer::Outcome{};
      },
      lifetime_.guard([this](Status) {
        busy_ = false;
        wake();
      }));
}

}  // namespace pnfsrdma::brick
