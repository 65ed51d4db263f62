// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/signals.h"

#include <algorithm>
#include <utility>

namespace pnfsrdma::brick {
namespace {

bool lies_inside(uint64_t offset, uint64_t length, size_t size) {
  return offset <= size && length <= size - offset;
}

}  // namespace

WatchReply Signals::watch(const WatchCall& call) {
  if (call.length > 0) return {call.id, begin(call)};
  watchers_.remove(inbox_, call.watch);
  return {call.id, WatchStatus::kOk};
}

// Whoever withdraws the grant takes it out of the exposures first, and ends what is watched under it then: one of both
// sees the other. What was told in between may be of the memory's next file; nobody has taken it, as this thread does.
WatchStatus Signals::begin(const WatchCall& call) {
  if (!inbox_.open()) return WatchStatus::kLimit;
  const auto memory = exposures_.memory(call.grant);
  if (!memory) return WatchStatus::kUnknownGrant;
  if (!lies_inside(call.offset, call.length, memory->size())) return WatchStatus::kInvalid;
  const WatchStatus status = watchers_.add(inbox_, call, *memory);
  if (status != WatchStatus::kOk || exposures_.memory(call.grant)) return status;
  watchers_.undo(inbox_, call.watch);
  return WatchStatus::kUnknownGrant;
}

SignalReply Signals::signal(const SignalCall& call) {
  SignalReply reply{.id = call.id, .status = check(call)};
  if (reply.status == SignalStatus::kOk && gate_.verifier() != call.verifier)
    reply.status = SignalStatus::kVerifier;
  if (reply.status == SignalStatus::kOk) {
    if (!gate_.persist_under(ranges_, call.verifier)) {
      reply.status = gate_.verifier() == call.verifier ? SignalStatus::kIo : SignalStatus::kVerifier;
    } else {
      reply.status = tell(call);
    }
  }
  reply.verifier = gate_.verifier();
  return reply;
}

SignalStatus Signals::check(const SignalCall& call) {
  ranges_.clear();
  for (const PersistTarget& target : call.ranges) {
    const auto use = exposures_.use(target.grant);
    if (!use || !use->writable) return SignalStatus::kUnknownGrant;
    if (!lies_inside(target.offset, target.length, use->memory.size())) return SignalStatus::kBounds;
    ranges_.push_back(use->memory.subspan(target.offset, target.length));
  }
  return SignalStatus::kOk;
}

// Each byte once: however often a call names it, who watches it is told once.
std::vector<PersistTarget> Signals::merged(const SignalCall& call) {
  std::vector<PersistTarget> targets;
  for (const PersistTarget& target : call.ranges) {
    if (target.length > 0) targets.push_back(target);
  }
  std::ranges::sort(targets, {},
                    [](const PersistTarget& target) { return std::pair(target.grant, target.offset); });
  std::vector<PersistTarget> merged;
  for (const PersistTarget& target : targets) {
    PersistTarget* const last = merged.empty() ? nullptr : &merged.back();
    if (last == nullptr || last->grant != target.grant || last->offset + last->length < target.offset) {
      merged.push_back(target);
    } else {
      last->length = std::max(last->length, target.offset + target.length - last->offset);
    }
  }
  return merged;
}

// A grant that is withdrawn meanwhile waits for the telling: behind that its memory may be another file's.
SignalStatus Signals::tell(const SignalCall& call) {
  for (const PersistTarget& target : merged(call)) {
    const auto use = exposures_.use(target.grant);
    if (!use) return SignalStatus::kUnknownGrant;
    watchers_.tell(use->memory.subspan(target.offset, target.length), call.value);
  }
  return SignalStatus::kOk;
}

}  // namespace pnfsrdma::brick
