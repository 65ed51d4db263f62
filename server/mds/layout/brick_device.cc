// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/brick_device.h"

#include <algorithm>
#include <utility>

#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {
constexpr Milliseconds kRetryReconciliation{200};
constexpr uint32_t kListedRunsPerCall = 4096;
// Bytes one zero call may take: it stays below the call timeout on slow media.
constexpr size_t kRangesPerCall = brick::kRangesPerCallMax;
}  // namespace

BrickDevice::BrickDevice(EventLoop& loop, brick::Control& control, Space& space, Random& random,
                         EpochSource next_epoch, std::string owner)
    : loop_(loop),
      control_(control),
      space_(space),
      random_(random),
      next_epoch_(std::move(next_epoch)),
      owner_(std::move(owner)) {}

template <typename T>
std::function<void(Result<T>)> BrickDevice::guard(Done<T> done) {
  return [this, alive = std::weak_ptr(alive_), round = round_, done = std::move(done)](Result<T> result) {
    if (alive.expired()) return;
    if (!result || round != round_) return done(std::unexpected(brick::Status::kTryLater));
    if (result->status == brick::Status::kStaleEpoch) fenced("a newer metadata server has claimed the brick");
    if (result->status != brick::Status::kOk) return done(std::unexpected(result->status));
    done(std::move(*result));
  };
}

template <typename T>
void BrickDevice::refuse(Done<T> done, brick::Status status) {
  loop_.post([alive = std::weak_ptr(alive_), done = std::move(done), status] {
    if (!alive.expired()) done(std::unexpected(status));
  });
}

// --- from connection to service
// ----------------------------------------------------------------------------------------

void BrickDevice::connected() {
  if (state_ == State::kFenced) return;
  lost();
  claim();
}

void BrickDevice::lost() {
  if (state_ == State::kFenced) return;
  const bool was_usable = usable();
  ++round_;
  state_ = State::kOffline;
  for (auto& [client, session] : sessions_) session.open = false;
  if (was_usable) {
    log_warning("layouts", "brick-lost epoch={}", epoch_);
    if (hooks_.on_lost) hooks_.on_lost();
  }
}

void BrickDevice::begin_again() {
  lost();
  const uint64_t round = round_;
  loop_.after(kRetryReconciliation, [this, alive = std::weak_ptr(alive_), round] {
    if (!alive.expired() && round == round_ && state_ == State::kOffline) claim();
  });
}

void BrickDevice::fenced(const std::string& why) {
  if (state_ == State::kFenced) return;
  ++round_;
  state_ = State::kFenced;
  for (auto& [client, session] : sessions_) session.open = false;
  log_error("layouts", "brick-fenced epoch={} why=\"{}\"", epoch_, why);
  if (hooks_.on_lost) hooks_.on_lost();
  // The other MDS closed all sessions when it began: what waits for a handle's death has it.
  sessions_closed();
  if (hooks_.on_fenced) hooks_.on_fenced(why);
}

// A new epoch for each beginning, persisted here before it is persisted there: what the brick still has of
// ours under the old one, queued or running, is refused or over when the claim is answered.
void BrickDevice::claim() {
  next_epoch_([this, alive = std::weak_ptr(alive_), round = round_](uint64_t epoch) {
    if (!alive.expired() && round == round_ && state_ == State::kOffline) claim_as(epoch);
  });
}

void BrickDevice::claim_as(uint64_t epoch) {
  epoch_ = epoch;
  brick::ClaimArguments arguments{.epoch = epoch, .owner = owner_};
  control_.claim(arguments,
                 [this, alive = std::weak_ptr(alive_), round = round_](Result<brick::ClaimResult> result) {
                   if (!alive.expired() && round == round_) claimed(std::move(result));
                 });
}

void BrickDevice::claimed(Result<brick::ClaimResult> result) {
  if (!result) return;  // the connection went with it: its events bring us here again
  if (result->status == brick::Status::kStaleEpoch) {
    return fenced("epoch " + std::to_string(epoch_) + " refused, the brick is at " +
                  std::to_string(result->claimed_epoch));
  }
  if (result->status != brick::Status::kOk) return begin_again();
  identity_ = std::move(*result);
  identified_ = true;
  verifier_ = identity_.verifier;
  state_ = State::kReconciling;
  // From here on calls of an older MDS are refused: what we list stays as listed.
  close_listed_sessions();
}

void BrickDevice::close_listed_sessions() {
  // No grant of an earlier time has a record (first version): all of them are revoked.
  control_.list_sessions(guard<brick::SessionsResult>([this](Answer<brick::SessionsResult> listed) {
    if (!usable()) return;
    if (!listed) return begin_again();
    auto left = std::make_shared<size_t>(listed->sessions.size());
    if (*left == 0) return sessions_closed();
    for (const brick::SessionEntry& session : listed->sessions) {
      control_.close_session({epoch_, session.client},
                             guard<brick::StatusResult>([this, left](Answer<brick::StatusResult> closed) {
                               if (!usable()) return;
                               if (!closed && closed.error() != brick::Status::kNotFound)
                                 return begin_again();
                               if (--*left == 0) sessions_closed();
                             }));
    }
  }));
}

void BrickDevice::sessions_closed() {
  // No handle of any client is alive: whoever waited for a handle's death has it.
  ++resets_;
  const uint64_t round = round_;
  for (const auto& done : std::exchange(waiting_for_reset_, {})) done();
  if (round == round_ && usable()) list_blocks(0, std::make_shared<std::vector<brick::Run>>());
}

void BrickDevice::list_blocks(uint64_t from, std::shared_ptr<std::vector<brick::Run>> listed) {
  control_.list({from, kListedRunsPerCall},
                guard<brick::ListResult>([this, from, listed](Answer<brick::ListResult> page) {
                  if (!usable()) return;
                  if (!page) return begin_again();
                  uint64_t next = from;
                  for (const brick::ListedRun& entry : page->runs) {
                    listed->push_back(entry.run);
                    next = entry.run.logical + entry.run.count * brick::kBlockSize;
                  }
                  if (page->end || page->runs.empty()) return compare_blocks(*listed);
                  list_blocks(next, listed);
                }));
}

void BrickDevice::compare_blocks(const std::vector<brick::Run>& listed) {
  const SpaceDifference difference = space_.compare(listed);
  for (const brick::Run& run : difference.missing) {
    log_error("layouts", "blocks-missing logical={} count={} what=\"files have lost data\"", run.logical,
              run.count);
  }
  if (!difference.leaked.empty()) {
    log_info("layouts", "blocks-leaked runs={} what=\"freed\"", difference.leaked.size());
    free(difference.leaked);
  }
  const uint64_t round = round_;
  if (!hooks_.zero_tails) return finish_reconciling(round);
  hooks_.zero_tails([this, alive = std::weak_ptr(alive_), round](bool zeroed) {
    if (alive.expired() || round != round_ || state_ != State::kReconciling) return;
    if (!zeroed) return begin_again();
    finish_reconciling(round);
  });
}

void BrickDevice::finish_reconciling(uint64_t round) {
  if (round != round_) return;
  state_ = State::kReady;
  log_info("layouts", "brick-ready epoch={} kind={} blocks={} free={}", epoch_, identity_.kind,
           identity_.block_count, identity_.free_blocks);
  if (hooks_.on_ready) hooks_.on_ready();
}

// --- sessions and exposure
// ---------------------------------------------------------------------------------------------

void BrickDevice::open_session(uint64_t client, Done<Ticket> done) {
  if (!ready()) return refuse(std::move(done), brick::Status::kTryLater);
  const auto [at, is_new] = sessions_.try_emplace(client);
  // The ticket outlives the brick's process, not the client's lease: a client reconnects with what it knows.
  if (is_new) random_.fill(at->second.ticket);
  const Ticket ticket = at->second.ticket;
  if (at->second.open) return done(ticket);
  control_.open_session(
      {epoch_, client, ticket},
      guard<brick::StatusResult>([this, client, ticket, done](Answer<brick::StatusResult> opened) {
        if (!opened) return done(std::unexpected(opened.error()));
        const auto session = sessions_.find(client);
        // Expelled while it was being opened: close_session() is behind us in the brick's queue.
        if (session == sessions_.end()) return done(std::unexpected(brick::Status::kTryLater));
        session->second.open = true;
        done(ticket);
      }));
}

void BrickDevice::close_session(uint64_t client, std::function<void()> done) {
  if (sessions_.erase(client) == 0 || state_ == State::kFenced) return done();
  if (!usable()) {
    waiting_for_reset_.push_back(std::move(done));
    return;
  }
  control_.close_session(
      {epoch_, client},
      guard<brick::StatusResult>([this, resets = resets_, done](Answer<brick::StatusResult> closed) {
        if (closed || closed.error() == brick::Status::kNotFound) return done();
        after_reset(resets, done);
      }));
}

void BrickDevice::after_reset(uint64_t resets_before, std::function<void()> done) {
  if (resets_ != resets_before || state_ == State::kFenced) return done();
  waiting_for_reset_.push_back(std::move(done));
  if (usable()) begin_again();
}

void BrickDevice::expose(uint64_t client, uint64_t logical, uint64_t length, bool writable,
                         Done<brick::ExposeResult> done) {
  if (!ready()) return refuse(std::move(done), brick::Status::kTryLater);
  control_.expose({epoch_, client, logical, length, writable}, guard<brick::ExposeResult>(std::move(done)));
}

void BrickDevice::withdraw(uint64_t client, const std::vector<uint64_t>& grants, std::function<void()> done) {
  if (grants.empty()) return done();
  if (state_ == State::kFenced) return done();
  if (!usable()) {
    // Dead with their sessions, at the latest when the brick is claimed again.
    waiting_for_reset_.push_back(std::move(done));
    return;
  }
  auto left =
      std::make_shared<size_t>((grants.size() + brick::kGrantsPerCallMax - 1) / brick::kGrantsPerCallMax);
  for (size_t at = 0; at < grants.size(); at += brick::kGrantsPerCallMax) {
    brick::WithdrawArguments arguments{.epoch = epoch_, .client = client};
    const size_t count = std::min(brick::kGrantsPerCallMax, grants.size() - at);
    arguments.grants.assign(grants.begin() + static_cast<ptrdiff_t>(at),
                            grants.begin() + static_cast<ptrdiff_t>(at + count));
    const auto one_done = [left, done] {
      if (--*left == 0) done();
    };
    control_.withdraw(arguments, guard<brick::StatusResult>(
                                     [this, resets = resets_, one_done](Answer<brick::StatusResult> answer) {
                                       // No such session: it was closed, and its handles with it.
                                       if (answer || answer.error() == brick::Status::kNotFound)
                                         return one_done();
                                       after_reset(resets, one_done);
                                     }));
  }
}

// --- blocks and bytes
// --------------------------------------------------------------------------------------------------

void BrickDevice::alloc(uint64_t logical, uint64_t count, Done<brick::RunsResult> done) {
  if (!ready()) return refuse(std::move(done), brick::Status::kTryLater);
  control_.alloc({epoch_, logical, count, true}, guard<brick::RunsResult>(std::move(done)));
}

void BrickDevice::free(const std::vector<brick::Run>& runs) {
  if (runs.empty() || !usable()) return;
  for (size_t at = 0; at < runs.size(); at += brick::kRunsMax) {
    const size_t count = std::min(brick::kRunsMax, runs.size() - at);
    brick::BlocksArguments arguments{.epoch = epoch_};
    arguments.runs.assign(runs.begin() + static_cast<ptrdiff_t>(at),
                          runs.begin() + static_cast<ptrdiff_t>(at + count));
    control_.free(arguments, guard<brick::StatusResult>([runs = count](Answer<brick::StatusResult> freed) {
                    if (freed || freed.error() == brick::Status::kTryLater) return;
                    log_error("layouts", "blocks-not-freed runs={} status={}", runs,
                              static_cast<uint32_t>(freed.error()));
                  }));
  }
}

namespace {

// Calls `call` for pieces of `ranges`, one after the other; answers with the last piece's result.
template <typename T>
void in_pieces(std::shared_ptr<const std::vector<brick::Range>> ranges, size_t at,
               std::function<void(const std::vector<brick::Range>&, BrickDevice::Done<T>)> call,
               BrickDevice::Done<T> done) {
  const size_t count = std::min(kRangesPerCall, ranges->size() - at);
  const std::vector<brick::Range> piece(ranges->begin() + static_cast<ptrdiff_t>(at),
                                        ranges->begin() + static_cast<ptrdiff_t>(at + count));
  call(piece, [=](BrickDevice::Answer<T> answer) {
    if (!answer || at + count == ranges->size()) return done(std::move(answer));
    in_pieces<T>(ranges, at + count, call, done);
  });
}

}  // namespace

void BrickDevice::persist(const std::vector<brick::Range>& ranges, Done<brick::PersistResult> done) {
  if (!usable()) return refuse(std::move(done), brick::Status::kTryLater);
  const auto call = [this](const std::vector<brick::Range>& piece, Done<brick::PersistResult> answer) {
    if (!usable()) return refuse(std::move(answer), brick::Status::kTryLater);
    control_.persist({epoch_, {piece}},
                     guard<brick::PersistResult>([this, answer](Answer<brick::PersistResult> result) {
                       if (result) verifier_ = result->verifier;
                       answer(std::move(result));
                     }));
  };
  in_pieces<brick::PersistResult>(std::make_shared<const std::vector<brick::Range>>(ranges), 0, call,
                                  std::move(done));
}

void BrickDevice::zero(const std::vector<brick::Range>& ranges, Done<brick::StatusResult> done) {
  if (!usable()) return refuse(std::move(done), brick::Status::kTryLater);
  const auto call = [this](const std::vector<brick::Range>& piece, Done<brick::StatusResult> answer) {
    if (!usable()) return refuse(std::move(answer), brick::Status::kTryLater);
    control_.zero({epoch_, {piece}}, guard<brick::StatusResult>(std::move(answer)));
  };
  in_pieces<brick::StatusResult>(std::make_shared<const std::vector<brick::Range>>(ranges), 0, call,
                                 std::move(done));
}

}  // namespace pnfsrdma::mds
