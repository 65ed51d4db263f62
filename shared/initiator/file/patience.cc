// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/patience.h"

#include <string>

#include "shared/base/sync.h"
#include "shared/initiator/cancellation.h"

namespace pnfsrdma::initiator {

bool is_answer(const Error& error) {
  return error.number() != EINTR && error.number() != ESHUTDOWN && error.number() != ETIMEDOUT;
}

Result<> Patience::still_wanted(const char* what) const {
  if (fabric_.aborted) return fail(ESHUTDOWN, std::string(what) + ": the mount ends");
  if (CancellationScope::cancelled()) return fail(EINTR, what);
  return {};
}

Result<> Patience::rest_of_brick(SteadyTime deadline) const {
  constexpr Milliseconds kPause{10};
  if (fabric_.aborted) return fail(ESHUTDOWN, "the mount ends");
  if (CancellationScope::cancelled()) return fail(EINTR, "whoever asked was killed");
  if (fabric_.now() >= deadline) return fail(kBrickSilent, "the brick does not answer");
  sleep_for(kPause);
  return {};
}

Result<std::shared_ptr<Connection>> Patience::connect(Device& device) const {
  const SteadyTime deadline = fabric_.io_deadline();
  for (;;) {
    auto connection = device.connect();
    if (connection) return connection;
    if (device.too_weak()) return std::unexpected(device.weakness());
    TRY(rest_of_brick(deadline));
  }
}

// A brick that is silent while the MDS is well is waited for as the MDS would be: by a hard mount until
// somebody ends the wait. How many threads wait for a brick is the caller's business.
Result<> Patience::as_mounted(const std::function<Result<>()>& operation) const {
  for (;;) {
    Result<> outcome = operation();
    if (outcome || outcome.error().number() != kBrickSilent) return outcome;
    const Persistence persistence = fabric_.options.persistence;
    if (persistence == Persistence::kSoft) return fail(EIO, outcome.error().what());
    if (persistence == Persistence::kSoftError) return fail(ETIMEDOUT, outcome.error().what());
    // Without a pause this thread has the file's flush again before whoever waits for it is awake: a recall,
    // say.
    TRY(rest_of_brick(SteadyTime::max()));
  }
}

}  // namespace pnfsrdma::initiator
