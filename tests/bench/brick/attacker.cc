// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/brick/attacker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/bench/brick/device.h"
#include "tests/bench/brick/invalidation.h"

namespace pnfsrdma::bench {
namespace {

constexpr uint32_t kPiece = 4096;
constexpr uint64_t kDepth = 16;
constexpr uint64_t kWorkIds = 1 << 20;  // above those of TestClient
constexpr uint64_t kWarm = 64;          // WRITEs before it reports that it writes
constexpr uint64_t kReportsMax = 100;
constexpr int kPatienceMs = 1000;
constexpr std::chrono::milliseconds kPauseBetweenConnections{2};

}  // namespace

Attacker::Attacker(rdma::Transport& transport, std::string address, const Ticket& ticket, Behaviour behaviour)
    : transport_(transport),
      address_(std::move(address)),
      ticket_(ticket),
      behaviour_(behaviour),
      orders_(STDIN_FILENO),
      posted_at_(kDepth) {}

int Attacker::run() {
  if (!connect()) return 1;
  say(STDOUT_FILENO, "connected");
  while (!stopped_) {
    take_orders();
    if (stopped_ || !target_ || given_up_) continue;
    write_on();
  }
  say(STDOUT_FILENO, fmt::format("end {} {} {}", last_success_posted_, refusals_, connections_));
  return 0;
}

void Attacker::take_orders() {
  const bool idle = !target_ || given_up_;
  for (auto words = orders_.next(idle ? kPatienceMs : 0); !words.empty(); words = orders_.next(0))
    obey(words);
  if (orders_.ended()) stopped_ = true;
}

void Attacker::obey(const std::vector<std::string>& words) {
  if (words[0] == "stop") stopped_ = true;
  if (words[0] == "break") break_queue_pair();
  if (words[0] == "invalidate") invalidate(static_cast<uint32_t>(std::stoul(words.at(1))));
  if (words[0] != "write") return;
  brick::Grant grant;
  grant.grant = std::stoull(words.at(1));
  grant.handle = static_cast<uint32_t>(std::stoul(words.at(2)));
  grant.address = std::stoull(words.at(3));
  grant.length = std::stoull(words.at(4));
  target_ = grant;
}

bool Attacker::connect() {
  auto client = brick::TestClient::connect(
      transport_, address_, ticket_, behaviour_ == Behaviour::kNoReceives ? 0 : brick::TestClient::kReceives);
  if (!client) {
    breaking_ = refusal_reported_ = false;
    refused(client.error().number() == ECONNREFUSED ? "connection-refused" : "connection-failed");
    return false;
  }
  client_ = *std::move(client);
  ++connections_;
  posted_ = completed_ = 0;
  breaking_ = refusal_reported_ = false;
  if (behaviour_ != Behaviour::kNoReceives) learn_target();
  return true;
}

// On a new connection a grant that lives has a new handle; one that is gone is tried under its old one.
void Attacker::learn_target() {
  const auto hello = client_->hello();
  if (!hello || !target_) return;
  for (const brick::HelloGrant& grant : hello->grants) {
    if (grant.grant != target_->grant) continue;
    target_->handle = grant.handle;
    target_->address = grant.address;
  }
}

void Attacker::write_on() {
  if (!client_ || !client_->queue_pair().connected()) {
    if (behaviour_ == Behaviour::kHealthy) {
      // The connection may have ended between two WRITEs: then the next one is refused here.
      if (!refusal_reported_) refused("disconnected");
      given_up_ = true;
      return;
    }
    std::this_thread::sleep_for(kPauseBetweenConnections);
    client_.reset();
    if (!connect()) return;
  }
  post_writes();
  take_completions();
  if (completed_ >= kWarm && !announced_) {
    announced_ = true;
    say(STDOUT_FILENO, "writing");
  }
}

// Every WRITE carries another pattern: whatever lands after the end is seen as a change.
void Attacker::post_writes() {
  rdma::QueuePair& queue_pair = client_->queue_pair();
  const uint64_t places = target_->length / kPiece;
  while (posted_ - completed_ < kDepth) {
    const rdma::LocalSlice source = client_->slice((posted_ % kDepth) * kPiece, kPiece);
    const int64_t at = now_ns();
    std::memcpy(source.address, &at, sizeof(at));
    const rdma::RemoteSlice target{target_->address + posted_ % places * kPiece, kPiece, target_->handle};
    if (!queue_pair.post_write(kWorkIds + posted_, std::span(&source, 1), target)) break;
    posted_at_[posted_ % kDepth] = at;
    ++posted_;
  }
  queue_pair.submit();
}

void Attacker::take_completions() {
  std::array<rdma::Completion, 2 * kDepth> completions;
  rdma::QueuePair& queue_pair = client_->queue_pair();
  size_t count = queue_pair.poll(completions);
  if (count == 0) {
    queue_pair.wait(std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
    count = queue_pair.poll(completions);
  }
  for (const rdma::Completion& completion : std::span(completions).first(count)) {
    if (completion.work_id < kWorkIds) continue;
    ++completed_;
    if (completion.outcome == rdma::Outcome::kSuccess) {
      last_success_posted_ =
          std::max(last_success_posted_, posted_at_[(completion.work_id - kWorkIds) % kDepth]);
    } else {
      refused(rdma::to_string(completion.outcome));
    }
  }
}

void Attacker::refused(const std::string& outcome) {
  if (breaking_) return;
  ++refusals_;
  if (refusal_reported_ || refusals_ > kReportsMax) return;
  refusal_reported_ = true;
  say(STDOUT_FILENO, fmt::format("refused {} {}", now_ns(), outcome));
}

void Attacker::break_queue_pair() {
  if (!client_) return;
  breaking_ = true;
  const rdma::LocalSlice source = client_->slice(0, kPiece);
  const rdma::RemoteSlice beyond{target_->address + target_->length, kPiece, target_->handle};
  static_cast<void>(client_->queue_pair().post_write(kWorkIds + posted_++, std::span(&source, 1), beyond));
  client_->queue_pair().submit();
}

void Attacker::invalidate(uint32_t key) {
  const bool sent = client_ && send_with_invalidate(client_->queue_pair(), key);
  breaking_ = breaking_ || sent;
  say(STDOUT_FILENO, std::string("invalidated ") + (sent ? "sent" : "not-sent"));
}

}  // namespace pnfsrdma::bench
