// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/mds/log/key_server.h"
#include "tests/doubles/metadata/key_rows.h"
#include "tests/sim/dice.h"
#include "tests/sim/scheduler.h"

namespace pnfsrdma::sim {

// The clock of one server: it runs a little too fast or too slow, and shows another time. Whoever looks at it while the
// server is paused sleeps until that is over, wherever he is.
class ServerClock final : public Clock {
 public:
  ServerClock(double rate, Milliseconds ahead) : rate_(rate), ahead_(ahead) {}

  SteadyTime now() const override;
  WallTime wall_now() const override { return {}; }
  void pause_until(SteadyTime time) { paused_until_ = time; }
  // Sleeps until the pause is over.
  void rest() const;
  // While it lives the clock is only looked at, from outside.
  class Look {
   public:
    explicit Look(ServerClock& clock) : clock_(clock) { clock_.looked_at_ = true; }
    ~Look() { clock_.looked_at_ = false; }
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;

   private:
    ServerClock& clock_;
  };

 private:
  const double rate_;
  const Milliseconds ahead_;
  SteadyTime paused_until_{};
  bool looked_at_ = false;
};

// etcd as a server sees it: linearizable transactions behind a network that delays, loses requests or answers, and may
// bring a request long after its sender has given up on it.
class ModelEtcd {
 public:
  explicit ModelEtcd(uint64_t seed) : dice_(seed) {}
  // Of a server's threads. The clock outlives what was made.
  mds::ConnectKeyServer connector(size_t server, const ServerClock& clock);
  // In a fiber of its own: never returns.
  void run();

  // The faults. Of a server that is cut off little arrives, and fewer answers, late.
  void cut(size_t server, bool is_cut) { is_cut ? void(cut_.insert(server)) : void(cut_.erase(server)); }
  void lose_quorum(bool lost) { quorum_lost_ = lost; }
  void set_troubled(bool troubled) { troubled_ = troubled; }
  void heal();

  const std::map<std::string, mds::KeyRow>& rows() const { return rows_.all(); }

 private:
  class Connection;
  using Work = std::function<void()>;

  void later(SteadyTime time, Work work);
  void arrive(const Work& work);
  SteadyTime::duration delay();

  Dice dice_;
  mds::KeyRows rows_;
  std::multimap<SteadyTime, Work> events_;
  simulated::Bell news_;
  std::set<size_t> cut_;
  bool quorum_lost_ = false;
  bool troubled_ = false;
};

}  // namespace pnfsrdma::sim
