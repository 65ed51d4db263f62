// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/mds/bricks/brick_set.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// What a brick says of itself, not older than a second while it answers and somebody looks.
struct BrickObservation {
  bool counted = false;  // `statistics` is what it said, no longer the zeros of before
  brick::StatisticsResult statistics;
  brick::LoopTurnsResult turns;
  // As many as there are clients, so views share them with the loop instead of copying. Null: nothing yet.
  std::shared_ptr<const std::vector<brick::SessionEntry>> sessions;
  std::map<std::string, uint32_t> connections;  // of clients, for data, by transport: counted from `sessions`
  // Null before the first answer, and always of a brick that does not know the question.
  std::shared_ptr<const std::vector<brick::SessionTraffic>> traffic;
};

// Asks every brick for its counters and sessions once a second, so that whoever shows them need not wait; not
// when nobody has looked for a minute. Control loop only.
class BrickObserver {
 public:
  BrickObserver(EventLoop& loop, BrickSet& bricks);
  ~BrickObserver();
  BrickObserver(const BrickObserver&) = delete;
  BrickObserver& operator=(const BrickObserver&) = delete;

  // Zeros before the first answer; what was last known while the brick is away.
  const BrickObservation& latest(BrickNumber number);
  void forget(BrickNumber number) { latest_.erase(number); }

 private:
  void look();

  EventLoop& loop_;
  BrickSet& bricks_;
  std::map<BrickNumber, BrickObservation> latest_;
  EventLoop::TimerId timer_ = 0;
  std::optional<SteadyTime> looked_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
