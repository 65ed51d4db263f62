// SPDX-License-Identifier: Apache-2.0
#include "server/mds/bricks/brick_device.h"

#include <algorithm>
#include <utility>

#include "shared/base/join.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {
constexpr Milliseconds kRetryReconciliation{200};
constexpr Milliseconds kRetryIdentification{1000};
// Who is told of a handle's death in one turn of the loop: each may be a commit.
constexpr size_t kToldPerTurn = 64;
// What one call has flushed or zeroed: calls for other files have their turn behind it.
constexpr uint64_t kBytesPerCall = 64 << 20;
constexpr uint64_t kBytesPerCopy = 8 << 20;
// What one LAYOUTGET may ask a brick for, about.
constexpr size_t kNearLimit = 256;
// The log names a limit that is met so often.
constexpr Milliseconds kLimitToldApart{60'000};
// Runs of lost blocks that the log names.
constexpr size_t kMissingTold = 64;

uint64_t end_of(const brick::Run& run) {
  return run.logical + run.count * brick::kBlockSize;
}

}  // namespace

nfs4::Status status_of(brick::Status status) {
  switch (status) {
    case brick::Status::kOk:
      return nfs4::Status::kOk;
    case brick::Status::kNoSpace:
      return nfs4::Status::kNoSpc;
    case brick::Status::kTryLater:
    case brick::Status::kLimit:
    case brick::Status::kStaleEpoch:
    case brick::Status::kLapsed:
      return nfs4::Status::kDelay;
    case brick::Status::kIo:
      return nfs4::Status::kIo;
    case brick::Status::kExists:
    case brick::Status::kNotFound:
    case brick::Status::kBusy:
    case brick::Status::kInvalid:
      break;
  }
  return nfs4::Status::kServerFault;
}

BrickDevice::BrickDevice(const Parts& parts, BrickNumber number, EpochSource next_epoch, Options options)
    : loop_(parts.loop),
      store_(parts.store),
      control_(parts.control),
      list_(parts.list),
      random_(parts.random),
      number_(number),
      next_epoch_(std::move(next_epoch)),
      options_(std::move(options)),
      since_(parts.loop.now()) {}

nfs4::Status BrickDevice::absence() const {
  if (ready()) return nfs4::Status::kOk;
  return loop_.now() - since_ < options_.patience ? nfs4::Status::kDelay : nfs4::Status::kIo;
}

void BrickDevice::enter(State state, std::string detail) {
  const bool was_ready = ready();
  state_ = state;
  detail_ = std::move(detail);
  if (ready() != was_ready) since_ = loop_.now();
}

// --- from connection to service ---

void BrickDevice::connected() {
  unreachable_why_.reset();
  if (state_ == State::kFenced) return;
  lost();
  identify();
}

void BrickDevice::lost() {
  end_round("no connection to its control socket");
}

void BrickDevice::unreachable(const Error& why) {
  unreachable_why_ = why;
  if (state_ == State::kOffline) detail_ = "nothing answers at " + record().address + ": " + why.to_string();
}

void BrickDevice::end_round(const std::string& why) {
  if (state_ == State::kFenced) return;
  const bool was_usable = usable();
  ++round_;
  claiming_ = false;
  settled_ = adopting_ = false;
  enter(State::kOffline, why);
  for (auto& [client, session] : sessions_) session.open = false;
  if (was_usable) {
    log_warning("layouts", "brick-lost brick={} epoch={} why=\"{}\"", number_, epoch_, why);
    if (hooks_.on_lost) hooks_.on_lost();
  }
  for (const auto& done : std::exchange(waiting_for_closing_, {})) done();
}

void BrickDevice::begin_again(const std::string& why) {
  end_round(why);
  loop_.after(kRetryReconciliation, [this, current = current()] {
    if (current() && state_ == State::kOffline) identify();
  });
}

void BrickDevice::fenced(const std::string& why) {
  if (state_ == State::kFenced) return;
  ++round_;
  enter(State::kFenced, why);
  for (auto& [client, session] : sessions_) session.open = false;
  log_error("layouts", "brick-fenced brick={} epoch={} why=\"{}\"", number_, epoch_, why);
  if (hooks_.on_lost) hooks_.on_lost();
  for (const auto& done : std::exchange(waiting_for_closing_, {})) done();
  // The other MDS closes all sessions when it begins, but those that it takes over. Nobody here learns of a
  // handle's death any more.
  adopting_ = false;
  sessions_settled();
  if (hooks_.on_fenced) hooks_.on_fenced(why);
}

// A claim would end what another server has there, so whose brick it is comes first.
void BrickDevice::identify() {
  control_.identify([this, current = current()](Result<brick::IdentifyResult> result) {
    if (!current() || !unclaimed()) return;
    if (result && result->status == brick::Status::kOk) identified(*result);
    if (!result) detail_ = result.error().to_string();
    if (claiming_) return;
    // A connection that is gone brings us here again by its events. One that is not gets another question:
    // whoever has the brick may give it up.
    loop_.after(kRetryIdentification, [this, current] {
      if (current() && unclaimed()) identify();
    });
  });
}

std::string BrickDevice::objection(const brick::IdentifyResult& found) const {
  const BrickRecord& known = record();
  const std::string at = "at " + known.address + " answers brick " + uuid_text(found.uuid);
  if (known.claimed_before() && known.uuid != found.uuid) return at + ", not brick " + uuid_text(known.uuid);
  if (!found.owner.empty() && found.owner != options_.owner) {
    return at + ", which belongs to metadata server " + found.owner + " (" +
           std::to_string(found.used_blocks) + " blocks in use): remove it there, or format it";
  }
  for (const BrickNumber other : list_.numbers()) {
    if (other != number_ && list_.find(other)->uuid == found.uuid) {
      return at + ", which is in use already as brick " + std::to_string(other) + " at " +
             list_.find(other)->address;
    }
  }
  return {};
}

void BrickDevice::identified(const brick::IdentifyResult& found) {
  const std::string why_not = objection(found);
  claiming_ = why_not.empty();
  if (claiming_) {
    enter(State::kOffline, "being claimed");
    return claim(found.owner.empty() ? found.claimed_epoch : 0);
  }
  if (state_ != State::kForeign || detail_ != why_not)
    log_error("layouts", "brick-foreign brick={} why=\"{}\"", number_, why_not);
  enter(State::kForeign, why_not);
}

// A new epoch for each beginning, persisted here before it is persisted there: what the brick still has of
// ours under the old one, queued or running, is refused or over when the claim is answered.
void BrickDevice::claim(uint64_t above) {
  next_epoch_(above, [this, current = current()](uint64_t epoch) {
    if (current() && state_ == State::kOffline) claim_as(epoch);
  });
}

void BrickDevice::claim_as(uint64_t epoch) {
  epoch_ = epoch;
  brick::ClaimArguments arguments{.epoch = epoch, .owner = options_.owner};
  control_.claim(arguments, [this, current = current()](Result<brick::ClaimResult> result) {
    if (current()) claimed(std::move(result));
  });
}

void BrickDevice::claimed(Result<brick::ClaimResult> result) {
  if (!result) return;  // the connection went with it: its events bring us here again
  if (result->status == brick::Status::kStaleEpoch) {
    return fenced("epoch " + std::to_string(epoch_) + " refused, the brick is at " +
                  std::to_string(result->claimed_epoch));
  }
  if (result->status != brick::Status::kOk) return begin_again("it refused the claim");
  identity_ = std::move(*result);
  identified_ = true;
  space().presume_free(identity_.free_blocks);
  compared_to_ = 0;
  adopting_ = std::exchange(adoptable_, false);
  enter(State::kReconciling, "being reconciled with the metadata");
  remember();
}

// Which brick this is must be on record before it holds anything of ours.
void BrickDevice::remember() {
  BrickRecord known = record();
  const BrickRecord before = known;
  known.uuid = identity_.uuid;
  known.block_count = identity_.block_count;
  known.durability = identity_.durability;
  // Before anybody is told another writeverf4 because of it.
  const auto heard = list_.heard_verifier(number_, identity_.verifier);
  Result<Sequence> stored = Sequence{};
  if (!heard) {
    stored = std::unexpected(heard.error());
  } else if (known != before) {
    stored = list_.update(known);
  } else if (*heard) {
    stored = **heard;
  }
  if (stored) verifier_ = identity_.verifier;
  // From here on calls of an older MDS are refused: what we list stays as listed.
  if (stored && known == before && !*heard) return settle_sessions();
  if (!stored) {
    log_error("layouts", "brick-not-remembered brick={} error=\"{}\"", number_, stored.error().to_string());
    return begin_again("the metadata could not be changed");
  }
  store_.when_synced(*stored, [this, current = current()] {
    if (current() && state_ == State::kReconciling) settle_sessions();
  });
}

// From a flush, which may have failed. What cannot be stored is found again at the next claim.
bool BrickDevice::take_verifier(const BrickVerifier& verifier) {
  const auto heard = list_.heard_verifier(number_, verifier);
  if (heard) {
    verifier_ = verifier;
    return true;
  }
  log_error("layouts", "brick-not-remembered brick={} error=\"{}\"", number_, heard.error().to_string());
  begin_again("its verifier could not be stored");
  return false;
}

void BrickDevice::sessions_settled() {
  // No handle is alive but those that layouts still have: whoever waited for a handle's death has it.
  if (!adopting_) {
    ++resets_;
    for (auto& [client, session] : sessions_) session.grants = 0;
  }
  settled_ = true;
  round_to_list_ = round_;
  const bool telling = !dead_.empty();  // those of an earlier round
  for (auto& done : std::exchange(waiting_for_reset_, {})) dead_.push_back(std::move(done));
  if (!telling) tell_dead();
}

void BrickDevice::tell_dead() {
  const EventLoop::Step step(loop_, "handles-dead");
  for (size_t i = 0; i < kToldPerTurn && !dead_.empty(); ++i) {
    const auto done = std::move(dead_.front());
    dead_.pop_front();
    done();
  }
  if (!dead_.empty()) {
    return loop_.post(lifetime_.guard([this] { tell_dead(); }));
  }
  if (std::exchange(round_to_list_, 0) != round_ || !usable()) return;
  // Right behind a start what files have is still being read.
  list_.when_known([this, current = current()] {
    if (current() && usable()) list_blocks(std::make_shared<Comparison>());
  });
}

// A page of what the brick has beside what files have there, then the next one.
struct BrickDevice::Comparison {
  std::vector<brick::Run> listed;
  uint64_t end = 0;    // of the addresses of which that is all
  size_t leaked = 0;   // runs, so far
  size_t missing = 0;  // likewise
};

void BrickDevice::list_blocks(const std::shared_ptr<Comparison>& work) {
  control_.list({compared_to_, brick::kListedRunsPerCall},
                guard<brick::ListResult>([this, work](Answer<brick::ListResult> page) {
                  if (!usable()) return;
                  if (!page) return begin_again("its blocks could not be listed");
                  work->listed.clear();
                  for (const brick::ListedRun& entry : page->runs) work->listed.push_back(entry.run);
                  work->end = page->end || page->runs.empty() ? UINT64_MAX : end_of(work->listed.back());
                  compare_page(work);
                }));
}

// Much that is missing takes more than one turn.
void BrickDevice::compare_page(const std::shared_ptr<Comparison>& work) {
  const EventLoop::Step step(loop_, "blocks-compared");
  constexpr size_t kMost = brick::kListedRunsPerCall;
  const SpaceDifference difference = space().compare(work->listed, compared_to_, work->end, kMost);
  const bool all = difference.missing.size() < kMost;
  compared_to_ = all ? work->end : end_of(difference.missing.back());
  for (const brick::Run& run : difference.missing) {
    if (work->missing++ >= kMissingTold) continue;
    log_error("layouts", "blocks-missing brick={} logical={} count={} what=\"files have lost data\"", number_,
              run.logical, run.count);
  }
  work->leaked += difference.leaked.size();
  free(difference.leaked, [] {});
  if (!all) {
    loop_.at_next_turn([this, work, current = current()] {
      if (current()) compare_page(work);
    });
    return;
  }
  if (compared_to_ < UINT64_MAX) return list_blocks(work);
  blocks_compared(*work);
}

void BrickDevice::blocks_compared(const Comparison& work) {
  space().set_capacity(identity_.block_count);
  if (work.missing > kMissingTold) {
    log_error("layouts", "blocks-missing brick={} runs={} what=\"files have lost data, these are all\"",
              number_, work.missing);
  }
  if (work.leaked > 0)
    log_info("layouts", "blocks-leaked brick={} runs={} what=\"freed\"", number_, work.leaked);
  const uint64_t round = round_;
  if (!hooks_.zero_tails) return finish_reconciling(round);
  hooks_.zero_tails(lifetime_.guard([this, round](bool zeroed) {
    if (round != round_ || state_ != State::kReconciling) return;
    if (!zeroed) return begin_again("tails could not be zeroed");
    finish_reconciling(round);
  }));
}

void BrickDevice::finish_reconciling(uint64_t round) {
  if (round != round_) return;
  enter(State::kReady, "");
  log_info("layouts", "brick-ready brick={} uuid={} epoch={} kind={} blocks={} free={}", number_,
           uuid_text(identity_.uuid), epoch_, identity_.kind, identity_.block_count, identity_.free_blocks);
  if (hooks_.on_ready) hooks_.on_ready();
}

// --- exposure ---

void BrickDevice::after_reset(uint64_t resets_before, std::function<void()> done) {
  if (resets_ != resets_before || state_ == State::kFenced) return done();
  waiting_for_reset_.push_back(std::move(done));
  if (usable()) begin_again("handles could not be withdrawn");
}

void BrickDevice::expose(uint64_t client, uint64_t logical, uint64_t length, bool writable,
                         Done<brick::ExposeResult> done) {
  if (!ready()) return refuse(std::move(done), brick::Status::kTryLater);
  control_.expose(
      {epoch_, client, logical, length, writable},
      guard<brick::ExposeResult>([this, client, done = std::move(done)](Answer<brick::ExposeResult> exposed) {
        const auto session = sessions_.find(client);
        if (exposed && session != sessions_.end()) session->second.grants += exposed->grants.size();
        if (!exposed && exposed.error() == brick::Status::kLimit) refused_by_limit(client);
        done(std::move(exposed));
      }));
}

size_t BrickDevice::grants_of(uint64_t client) const {
  const auto session = sessions_.find(client);
  return session == sessions_.end() ? 0 : session->second.grants;
}

bool BrickDevice::at_own_limit(uint64_t client) const {
  const size_t most = identity_.grants_max;
  return most > 0 && grants_of(client) + kNearLimit >= most;
}

uint64_t BrickDevice::holder_of_most() const {
  uint64_t holder = 0;
  size_t most = 0;
  for (const auto& [client, session] : sessions_) {
    if (client == kOwnBrickClient || session.grants <= most) continue;
    holder = client;
    most = session.grants;
  }
  return holder;
}

// A client at the limit of its own session is everyday: it is asked for less.
void BrickDevice::refused_by_limit(uint64_t client) {
  if (at_own_limit(client)) return;
  met_limit_ = loop_.now();
  if (limit_told_ && *met_limit_ - *limit_told_ < kLimitToldApart) return;
  limit_told_ = met_limit_;
  size_t grants = 0;
  for (const auto& [other, session] : sessions_) grants += session.grants;
  log_warning("layouts",
              "brick-limit brick={} client={} sessions={} grants={} what=\"limits of the brick are used up: "
              "clients without a layout do I/O through this server\"",
              number_, client, sessions_.size(), grants);
}

void BrickDevice::withdraw(uint64_t client, const std::vector<uint64_t>& grants, std::function<void()> done) {
  if (grants.empty()) return done();
  if (state_ == State::kFenced) return done();
  if (!ready() && !(usable() && adopting_)) {
    // Dead with their sessions, at the latest when the brick is claimed again: none is opened before it is
    // ready. Or withdrawn then, because no layout has them any more.
    if (usable() && settled_) return done();
    waiting_for_reset_.push_back(std::move(done));
    return;
  }
  if (const auto session = sessions_.find(client); session != sessions_.end())
    session->second.grants -= std::min(session->second.grants, grants.size());
  const Join join(std::move(done));
  for (size_t at = 0; at < grants.size(); at += brick::kGrantsPerCallMax) {
    brick::WithdrawArguments arguments{.epoch = epoch_, .client = client};
    const size_t count = std::min(brick::kGrantsPerCallMax, grants.size() - at);
    arguments.grants.assign(grants.begin() + static_cast<ptrdiff_t>(at),
                            grants.begin() + static_cast<ptrdiff_t>(at + count));
    control_.withdraw(arguments, guard<brick::StatusResult>([this, resets = resets_, end = join.part()](
                                                                Answer<brick::StatusResult> answer) {
                        // No such session: it was closed, and its handles with it.
                        if (answer || answer.error() == brick::Status::kNotFound) return end();
                        after_reset(resets, end);
                      }));
  }
  join.end();
}

// --- blocks and bytes ---

void BrickDevice::alloc(uint64_t logical, uint64_t count, Done<brick::RunsResult> done) {
  if (!ready()) return refuse(std::move(done), brick::Status::kTryLater);
  control_.alloc({epoch_, logical, count, true}, guard<brick::RunsResult>(std::move(done)));
}

void BrickDevice::free(std::vector<brick::Run> runs, std::function<void()> done) {
  for (brick::Run& run : runs) {
    const uint64_t end = std::min(end_of(run), std::max(compared_to_, run.logical));
    run.count = (end - run.logical) / brick::kBlockSize;
  }
  std::erase_if(runs, [](const brick::Run& run) { return run.count == 0; });
  if (runs.empty() || !usable()) return done();
  const Join join(std::move(done));
  for (size_t at = 0; at < runs.size(); at += brick::kRunsMax) {
    const size_t count = std::min(brick::kRunsMax, runs.size() - at);
    brick::BlocksArguments arguments{.epoch = epoch_};
    arguments.runs.assign(runs.begin() + static_cast<ptrdiff_t>(at),
                          runs.begin() + static_cast<ptrdiff_t>(at + count));
    control_.free(arguments, guard<brick::StatusResult>(
                                 [runs = count, end = join.part()](Answer<brick::StatusResult> freed) {
                                   if (!freed && freed.error() != brick::Status::kTryLater) {
                                     log_error("layouts", "blocks-not-freed runs={} status={}", runs,
                                               static_cast<uint32_t>(freed.error()));
                                   }
                                   end();
                                 }));
  }
  join.end();
}

namespace {

// Of bytes and ranges no more than a call may have, at least one piece.
std::vector<std::vector<brick::Range>> pieces_of(const std::vector<brick::Range>& ranges) {
  std::vector<std::vector<brick::Range>> pieces(1);
  uint64_t bytes = 0;
  for (brick::Range range : ranges) {
    while (range.length > 0) {
      if (bytes == kBytesPerCall || pieces.back().size() == brick::kRangesPerCallMax) {
        pieces.emplace_back();
        bytes = 0;
      }
      const uint64_t length = std::min(range.length, kBytesPerCall - bytes);
      pieces.back().push_back({range.logical, length});
      bytes += length;
      range = {range.logical + length, range.length - length};
    }
  }
  return pieces;
}

// Makes `call` for the pieces, one after the other; answers with the last one's result.
template <typename T>
void in_pieces(std::shared_ptr<const std::vector<std::vector<brick::Range>>> pieces, size_t at,
               std::function<void(const std::vector<brick::Range>&, BrickDevice::Done<T>)> call,
               BrickDevice::Done<T> done) {
  call((*pieces)[at], [=](BrickDevice::Answer<T> answer) {
    if (!answer || at + 1 == pieces->size()) return done(std::move(answer));
    in_pieces<T>(pieces, at + 1, call, done);
  });
}

}  // namespace

void BrickDevice::persist(const std::vector<brick::Range>& ranges, Done<brick::PersistResult> done) {
  if (!usable()) return refuse(std::move(done), brick::Status::kTryLater);
  const auto call = [this](const std::vector<brick::Range>& piece, Done<brick::PersistResult> answer) {
    if (!usable()) return refuse(std::move(answer), brick::Status::kTryLater);
    control_.persist({epoch_, {piece}},
                     guard<brick::PersistResult>([this, answer](Answer<brick::PersistResult> result) {
                       if (result && !take_verifier(result->verifier)) {
                         return answer(std::unexpected(brick::Status::kTryLater));
                       }
                       answer(std::move(result));
                     }));
  };
  in_pieces<brick::PersistResult>(
      std::make_shared<const std::vector<std::vector<brick::Range>>>(pieces_of(ranges)), 0, call,
      std::move(done));
}

void BrickDevice::zero(const std::vector<brick::Range>& ranges, Done<brick::StatusResult> done) {
  // Before that somebody of an earlier time may write there, behind the zeros.
  if (!usable() || !settled_) return refuse(std::move(done), brick::Status::kTryLater);
  const auto call = [this](const std::vector<brick::Range>& piece, Done<brick::StatusResult> answer) {
    if (!usable() || !settled_) return refuse(std::move(answer), brick::Status::kTryLater);
    control_.zero({epoch_, {piece}}, guard<brick::StatusResult>(std::move(answer)));
  };
  in_pieces<brick::StatusResult>(
      std::make_shared<const std::vector<std::vector<brick::Range>>>(pieces_of(ranges)), 0, call,
      std::move(done));
}

void BrickDevice::copy(uint64_t source, uint64_t target, uint64_t length, Done<brick::StatusResult> done) {
  if (!usable() || !settled_) return refuse(std::move(done), brick::Status::kTryLater);
  const uint64_t piece = std::min(length, kBytesPerCopy);
  auto copied = [this, source, target, length, piece,
                 done = std::move(done)](Answer<brick::StatusResult> answer) mutable {
    if (!answer || piece == length) return done(std::move(answer));
    copy(source + piece, target + piece, length - piece, std::move(done));
  };
  control_.copy({epoch_, source, target, piece}, guard<brick::StatusResult>(std::move(copied)));
}

// --- for administrators ---

void BrickDevice::statistics(Done<brick::StatisticsResult> done) {
  if (!usable()) return refuse(std::move(done), brick::Status::kTryLater);
  control_.statistics(guard<brick::StatisticsResult>(std::move(done)));
}

void BrickDevice::loop_turns(Done<brick::LoopTurnsResult> done) {
  if (!usable()) return refuse(std::move(done), brick::Status::kTryLater);
  control_.loop_turns(guard<brick::LoopTurnsResult>(std::move(done)));
}

void BrickDevice::session_traffic(Done<brick::SessionTrafficResult> done) {
  if (!usable()) return refuse(std::move(done), brick::Status::kTryLater);
  control_.session_traffic(guard<brick::SessionTrafficResult>(std::move(done)));
}

void BrickDevice::list_sessions(Done<brick::SessionsResult> done) {
  if (!usable()) return refuse(std::move(done), brick::Status::kTryLater);
  control_.list_sessions(guard<brick::SessionsResult>(std::move(done)));
}

void BrickDevice::list(const brick::ListArguments& arguments, Done<brick::ListResult> done) {
  if (!ready()) return refuse(std::move(done), brick::Status::kTryLater);
  control_.list(arguments, guard<brick::ListResult>(std::move(done)));
}

void BrickDevice::survey(const brick::SurveyArguments& arguments, Done<brick::SurveyResult> done) {
  if (!ready()) return refuse(std::move(done), brick::Status::kTryLater);
  control_.survey(arguments, guard<brick::SurveyResult>(std::move(done)));
}

void BrickDevice::erase(uint64_t from, uint64_t count, Done<brick::StatusResult> done) {
  if (!ready()) return refuse(std::move(done), brick::Status::kTryLater);
  // Damaged blocks are in service again.
  space().set_capacity(identity_.block_count);
  control_.erase({epoch_, identity_.uuid, from, count}, guard<brick::StatusResult>(std::move(done)));
}

void BrickDevice::release(std::function<void(bool)> done) {
  if (!usable()) {
    return loop_.post(lifetime_.guard([done = std::move(done)] { done(false); }));
  }
  next_epoch_(0, [this, current = current(), done = std::move(done)](uint64_t epoch) {
    if (!current()) return done(false);
    control_.claim({.epoch = epoch, .owner = ""},
                   lifetime_.guard([done](const Result<brick::ClaimResult>& result) {
                     done(result && result->status == brick::Status::kOk);
                   }));
  });
}

}  // namespace pnfsrdma::mds
