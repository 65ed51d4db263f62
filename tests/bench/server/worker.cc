// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/server/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shared/nfs4/status_errno.h"

namespace pnfsrdma::bench {
namespace {

using nfs4::Status;

constexpr Milliseconds kPauseFirst{1};
constexpr Milliseconds kPauseMax{200};
// The longest grace period one meets, and some more.
constexpr Milliseconds kPatience{150'000};

bool is_passing(Status status) {
  return status == Status::kDelay || status == Status::kGrace || status == Status::kLayoutTryLater;
}

}  // namespace

void Worker::play(const Calls& calls, Done done) {
  calls_ = &calls;
  at_ = 0;
  pause_ = kPauseFirst;
  paused_ = Milliseconds(0);
  done_ = std::move(done);
  next();
}

void Worker::next() {
  while (at_ < calls_->size() && (*calls_)[at_].wanted != nullptr && !(*calls_)[at_].wanted(*this)) ++at_;
  if (at_ == calls_->size()) return finish({});
  const Call& call = (*calls_)[at_];
  client.call(
      slot, call.cache, [this, &call](nfs4::CompoundWriter& compound) { call.build(*this, compound); },
      [this](Result<nfs4::CompoundResultReader*> results) { answered(std::move(results)); });
}

void Worker::answered(Result<nfs4::CompoundResultReader*> results) {
  if (!results) return finish(std::unexpected(std::move(results).error()));
  const Call& call = (*calls_)[at_];
  Status status = (*results)->status();
  if (is_passing(status) && paused_ < kPatience) {
    ++delays_;
    paused_ += pause_;
    loop_.after(std::exchange(pause_, std::min(pause_ * 2, kPauseMax)), [this] { next(); });
    return;
  }
  if (status == Status::kOk && call.read != nullptr) {
    const Outcome read = call.read(*this, **results);
    if (!read) status = read.error();
  }
  if (status != Status::kOk && status != call.also_good) {
    return finish(fail(nfs4::to_errno(status), fmt::format("{} by client {}: the server answers {}",
                                                           call.what, number, nfs4::to_string(status))));
  }
  pause_ = kPauseFirst;
  paused_ = Milliseconds(0);
  if (call.again == nullptr || !call.again(*this)) ++at_;
  next();
}

void Worker::finish(Result<> outcome) {
  calls_ = nullptr;
  std::exchange(done_, nullptr)(std::move(outcome));
}

}  // namespace pnfsrdma::bench
