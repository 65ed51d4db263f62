// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/brick/behaviour.h"
#include "tests/bench/brick/brick_owner.h"
#include "tests/bench/brick/bystander.h"
#include "tests/bench/brick/settings.h"
#include "tests/bench/brick/watched_process.h"
#include "tests/bench/percentiles.h"

namespace pnfsrdma::bench {

// How the access ends: one grant, or the whole session (the client is expelled).
enum class Ending { kWithdraw, kExpel };

// Times are microseconds since the decision, which is the moment before the brick is asked.
struct FencingRow {
  Behaviour behaviour;
  Ending ending;
  Percentiles announced;  // the brick has answered: the handle is dead
  Percentiles refused;    // the attacker saw its first refusal (a stopped one: since it runs again)
  uint64_t rounds = 0, retries = 0;
  // Must stay 0: WRITEs posted after the announcement that succeeded; rounds in which a byte changed after
  // announcement and quarantine; rounds whose attacker never saw a refusal.
  uint64_t late_writes = 0, late_changes = 0, never_refused = 0;
  // A client that sends SEND with Invalidate loses its connection by it each time.
  bool expelled() const { return behaviour != Behaviour::kInvalidates || retries >= rounds; }
  bool sound() const { return late_writes == 0 && late_changes == 0 && never_refused == 0 && expelled(); }
};

// Takes grants from clients of every behaviour with a stop-watch in hand, while two bystanders work on.
// Needs a running brick without MDS. One thread, beside the bystanders'.
class Fencing {
 public:
  static Result<std::unique_ptr<Fencing>> prepare(const BrickSettings& settings);
  // All rounds of one row.
  Result<FencingRow> measure(Behaviour behaviour, Ending ending, uint64_t rounds);

  // Latencies of the bystanders, microseconds: in the 200 ms after decisions, and while the attackers wrote
  // before them. Ends the bystanders.
  struct Neighbour {
    std::string what;
    Percentiles before, during;
    uint64_t errors = 0;
  };
  std::vector<Neighbour> neighbours();

 private:
  // Of one round, CLOCK_MONOTONIC.
  struct Moments {
    int64_t wrote = 0, decided = 0, announced = 0, ran_again = 0;
  };

  explicit Fencing(const BrickSettings& settings) : settings_(settings) {}
  Result<> prepare();
  Result<> round(FencingRow& row);
  Result<> revoke(Ending ending, uint64_t client, uint64_t grant);
  Result<> misbehave(WatchedProcess& attacker, Behaviour behaviour, const brick::Grant& grant);
  Result<> count_reports(WatchedProcess& attacker, const Moments& moments, FencingRow& row);
  Result<Bytes> snapshot();

  const BrickSettings settings_;
  SystemRandom random_;
  std::unique_ptr<rdma::Transport> transport_;
  std::unique_ptr<BrickOwner> owner_;
  std::string address_;
  uint64_t victim_ = 0;  // the attackers' memory, a logical address
  uint64_t next_client_ = 100;
  std::unique_ptr<brick::TestClient> observer_;
  brick::Grant observed_;
  std::vector<std::unique_ptr<Bystander>> bystanders_;
  std::vector<Moments> moments_;
};

// The whole programme: prints the table, or JSON. 0 when every row is sound and no bystander saw an error.
int run_fencing(const BrickSettings& settings);

}  // namespace pnfsrdma::bench
