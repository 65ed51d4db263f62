// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/brick/fencing.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "tests/bench/brick/device.h"

namespace pnfsrdma::bench {
namespace {

constexpr uint32_t kLength = uint32_t{256} << 10;
constexpr uint64_t kObserver = 1, kFirstBystander = 2;
constexpr int kPatienceMs = 60000;
constexpr std::chrono::milliseconds kQuarantine{brick::kQuarantineMs};
// How long the attacker may go on trying before its memory is looked at for the last time.
constexpr std::chrono::milliseconds kAftermath{200};
constexpr std::chrono::milliseconds kPauseToReconnect{50};
constexpr int64_t kRefusalPatienceNs = 15'000'000'000, kCanaryPatienceNs = 500'000'000;
// Of a bystander's operations these belong to a decision.
constexpr int64_t kWindowNs = 200'000'000;

double microseconds(int64_t from, int64_t to) {
  return static_cast<double>(to - from) / 1000;
}

}  // namespace

Result<std::unique_ptr<Fencing>> Fencing::prepare(const BrickSettings& settings) {
  std::unique_ptr<Fencing> fencing(new Fencing(settings));
  TRY(fencing->prepare());
  return fencing;
}

Result<> Fencing::prepare() {
  TRY_ASSIGN(transport_, open_transport(settings_.transport, random_));
  TRY_ASSIGN(owner_, BrickOwner::claim(settings_.control));
  TRY_ASSIGN(address_, owner_->address_for(settings_.transport));
  TRY_ASSIGN(victim_, owner_->alloc(2));
  TRY_ASSIGN(const Ticket ticket, owner_->open_session(kObserver));
  TRY_ASSIGN(observer_, brick::TestClient::connect(*transport_, address_, ticket));
  TRY_ASSIGN(observed_, owner_->expose(kObserver, victim_, kLength, false));
  for (const bool writes : {true, false}) {
    TRY_ASSIGN(auto bystander, Bystander::start(*owner_, *transport_, address_, kFirstBystander + writes,
                                                victim_ + brick::kBlockSize, writes));
    bystanders_.push_back(std::move(bystander));
  }
  return {};
}

Result<FencingRow> Fencing::measure(Behaviour behaviour, Ending ending, uint64_t rounds) {
  FencingRow row{.behaviour = behaviour, .ending = ending};
  while (row.rounds < rounds) {
    TRY(round(row));
    ++row.rounds;
  }
  return row;
}

Result<> Fencing::round(FencingRow& row) {
  const uint64_t client = next_client_++;
  TRY_ASSIGN(const Ticket ticket, owner_->open_session(client));
  TRY_ASSIGN(
      const auto attacker,
      WatchedProcess::start({"bench-brick", "attack", "--transport", settings_.transport, "--address",
                             address_, "--ticket", to_hex(ticket), "--behaviour", to_string(row.behaviour)}));
  TRY(attacker->expect("connected", kPatienceMs));
  TRY_ASSIGN(const brick::Grant grant, owner_->expose(client, victim_, kLength, true));
  attacker->order(fmt::format("write {} {} {} {}", grant.grant, grant.handle, grant.address, grant.length));
  TRY(attacker->expect("writing", kPatienceMs));
  Moments moments{.wrote = now_ns()};
  std::this_thread::sleep_for(std::chrono::milliseconds(5 + random_.next_u32() % 20));
  TRY(misbehave(*attacker, row.behaviour, grant));

  moments.decided = now_ns();
  TRY(revoke(row.ending, client, grant.grant));
  moments.announced = now_ns();
  std::this_thread::sleep_for(kQuarantine);
  TRY_ASSIGN(const Bytes rested, snapshot());
  moments.ran_again = moments.decided;
  if (row.behaviour == Behaviour::kStopped) {
    moments.ran_again = now_ns();
    attacker->thaw();
  }
  std::this_thread::sleep_for(kAftermath);
  TRY_ASSIGN(const Bytes at_last, snapshot());

  row.announced.add(microseconds(moments.decided, moments.announced));
  row.late_changes += rested != at_last;
  moments_.push_back(moments);
  TRY(count_reports(*attacker, moments, row));
  if (row.ending == Ending::kWithdraw || settings_.without_revocation) TRY(owner_->close_session(client));
  return {};
}

Result<> Fencing::revoke(Ending ending, uint64_t client, uint64_t grant) {
  if (settings_.without_revocation) return {};
  return ending == Ending::kExpel ? owner_->close_session(client) : owner_->withdraw(client, grant);
}

Result<> Fencing::misbehave(WatchedProcess& attacker, Behaviour behaviour, const brick::Grant& grant) {
  switch (behaviour) {
    case Behaviour::kBroken:
      attacker.order("break");
      // Into the error state, or through it, or past it to a new connection.
      std::this_thread::sleep_for(std::chrono::microseconds(random_.next_u32() % 20000));
      return {};
    case Behaviour::kStopped:
      return attacker.freeze();
    case Behaviour::kInvalidates:
      // A bystander's key first; the attacker's own, whatever became of the connection; one that nobody has.
      for (const uint32_t key : {bystanders_.front()->grant().handle, grant.handle, random_.next_u32()}) {
        attacker.order(fmt::format("invalidate {}", key));
        TRY(attacker.expect("invalidated", kPatienceMs));
        std::this_thread::sleep_for(kPauseToReconnect);
      }
      return {};
    case Behaviour::kHealthy:
    case Behaviour::kIgnores:
    case Behaviour::kNoReceives:
      return {};
  }
  return {};
}

// The refusal first, however long it takes to reach the attacker: WRITEs that fall into a queue pair which is
// gone are given up by its own device, after its retries.
Result<> Fencing::count_reports(WatchedProcess& attacker, const Moments& moments, FencingRow& row) {
  bool refused = false, ordered = false;
  const int64_t patience_ends =
      moments.announced + (settings_.without_revocation ? kCanaryPatienceNs : kRefusalPatienceNs);
  for (;;) {
    if (!ordered && (refused || now_ns() > patience_ends)) {
      attacker.order("stop");
      ordered = true;
    }
    const auto words = attacker.report(ordered ? kPatienceMs : 100);
    if (!words && words.error().number() == ETIMEDOUT && !ordered) continue;
    if (!words) return std::unexpected(words.error());
    if (words->front() == "refused" && !refused) {
      const int64_t at = std::stoll(words->at(1));
      refused = at >= moments.decided;
      if (refused) row.refused.add(microseconds(moments.ran_again, at));
    }
    if (words->front() != "end") continue;
    row.late_writes += std::stoll(words->at(1)) > moments.announced;
    row.retries += std::stoull(words->at(3)) - 1;
    row.never_refused += !refused;
    return {};
  }
}

Result<Bytes> Fencing::snapshot() {
  if (observer_->read(observed_, 0, kLength) != rdma::Outcome::kSuccess) {
    return fail(EIO, "the observer cannot read the attacker's memory");
  }
  return Bytes(observer_->scratch().begin(), observer_->scratch().begin() + kLength);
}

std::vector<Fencing::Neighbour> Fencing::neighbours() {
  std::vector<Neighbour> neighbours;
  for (const auto& bystander : bystanders_) {
    bystander->stop();
    Neighbour neighbour{.what = bystander->what(), .errors = bystander->errors()};
    auto moments = moments_.begin();
    for (const auto& [began, took] : bystander->operations()) {
      while (moments != moments_.end() && began > moments->decided + kWindowNs) ++moments;
      if (moments == moments_.end()) break;
      if (began < moments->wrote) continue;
      (began + took >= moments->decided ? neighbour.during : neighbour.before)
          .add(static_cast<double>(took) / 1000);
    }
    neighbours.push_back(std::move(neighbour));
  }
  return neighbours;
}

}  // namespace pnfsrdma::bench
