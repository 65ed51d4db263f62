// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/committer.h"

#include <memory>
#include <utility>

#include "shared/base/log.h"

namespace pnfsrdma::brick {

Committer::Committer(EventLoop& loop, Pool& pool, FlushGate& gate) : loop_(loop), pool_(pool), gate_(gate) {
  if (pool.persistence().blocks()) executor_ = std::make_unique<Executor>(loop, "brick-table");
}

void Committer::submit(Change change, Done done) {
  waiting_.push_back({std::move(change), std::move(done)});
  if (waiting_.size() == 1 && !busy_) {
    busy_ = true;
    loop_.at_turn_end(lifetime_.guard([this] { run_next(); }));
  }
}

// Changes that touch nothing, and those whose flush cannot block, run through in one turn.
void Committer::run_next() {
  while (!waiting_.empty()) {
    Pending next = std::move(waiting_.front());
    waiting_.pop_front();
    if (failed_) {
      next.done(Status::kIo);
      continue;
    }
    // A data flush that fails between our store and our flush may have been told of our loss: persist_under
    // sees that.
    const Verifier verifier = gate_.verifier();
    const Outcome outcome = next.change();
    std::vector<ByteSpan> touched = pool_.table().take_touched();
    if (!outcome.superblock.empty()) touched.push_back(outcome.superblock);
    if (touched.empty()) {
      next.done(outcome.status);
      continue;
    }
    if (!executor_) {
      finish(gate_.persist_under(touched, verifier), outcome.status, next.done);
      continue;
    }
    auto result = std::make_shared<Result<>>();
    executor_->run([this, touched = std::move(touched), verifier,
                    result] { *result = gate_.persist_under(touched, verifier, FlushGate::Place::kFront); },
                   [this, result, status = outcome.status, done = std::move(next.done)] {
                     finish(*result, status, done);
                     run_next();
                   });
    return;
  }
  busy_ = false;
}

void Committer::finish(const Result<>& flushed, Status status, const Done& done) {
  if (!flushed) {
    failed_ = true;
    log_error("brick", "table-flush-failed error=\"{}\" all changes are refused until a restart",
              flushed.error().to_string());
  }
  done(flushed ? status : Status::kIo);
}

}  // namespace pnfsrdma::brick
