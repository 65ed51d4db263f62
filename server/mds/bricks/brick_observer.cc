// SPDX-License-Identifier: Apache-2.0
#include "server/mds/bricks/brick_observer.h"

namespace pnfsrdma::mds {

namespace {
constexpr Milliseconds kEvery{1000};
constexpr Milliseconds kInterest{60'000};

std::map<std::string, uint32_t> connections_of(const std::vector<brick::SessionEntry>& sessions) {
  std::map<std::string, uint32_t> connections;
  for (const brick::SessionEntry& session : sessions) {
    if (session.connection != 0 && session.client != kOwnBrickClient) ++connections[session.transport];
  }
  return connections;
}
}  // namespace

BrickObserver::BrickObserver(EventLoop& loop, BrickSet& bricks) : loop_(loop), bricks_(bricks) {
  timer_ = loop_.after(kEvery, [this] { look(); });
}

BrickObserver::~BrickObserver() {
  loop_.cancel(timer_);
}

const BrickObservation& BrickObserver::latest(BrickNumber number) {
  looked_ = loop_.now();
  return latest_[number];
}

void BrickObserver::look() {
  timer_ = loop_.after(kEvery, [this] { look(); });
  if (!looked_ || loop_.now() - *looked_ > kInterest) return;
  for (BrickDevice* const brick : bricks_.all()) {
    if (!brick->ready()) continue;
    const auto known = [this, token = lifetime_.token(), number = brick->number()]() -> BrickObservation* {
      return token.expired() || bricks_.find(number) == nullptr ? nullptr : &latest_[number];
    };
    brick->statistics([known](BrickDevice::Answer<brick::StatisticsResult> answer) {
      BrickObservation* const entry = answer ? known() : nullptr;
      if (entry == nullptr) return;
      entry->statistics = *answer;
      entry->counted = true;
    });
    brick->loop_turns([known](BrickDevice::Answer<brick::LoopTurnsResult> answer) {
      if (BrickObservation* const entry = answer ? known() : nullptr) entry->turns = *answer;
    });
    brick->session_traffic([known](BrickDevice::Answer<brick::SessionTrafficResult> answer) {
      if (BrickObservation* const entry = answer ? known() : nullptr)
        entry->traffic =
            std::make_shared<const std::vector<brick::SessionTraffic>>(std::move(answer->sessions));
    });
    brick->list_sessions([known](BrickDevice::Answer<brick::SessionsResult> answer) {
      BrickObservation* const entry = answer ? known() : nullptr;
      if (entry == nullptr) return;
      entry->sessions = std::make_shared<const std::vector<brick::SessionEntry>>(std::move(answer->sessions));
      entry->connections = connections_of(*entry->sessions);
    });
  }
}

}  // namespace pnfsrdma::mds
