// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "shared/base/log.h"
#include "shared/base/log_observer.h"
#include "tests/sim/apart.h"
#include "tests/sim/log/log_server.h"

// Several servers that share a log, in virtual time against faults by a seed (../README.md). The first argument is the
// seed to begin with, the second how many; with one argument a seed is run with a trace.
namespace pnfsrdma::sim {
namespace {

constexpr Milliseconds kServedWithin{20'000};
constexpr rlim_t kProcessorSecondsMax = 20;  // a seed that turns in circles

struct Totals {
  uint64_t answers = 0, terms = 0, faults = 0;
};

class World {
 public:
  World(uint64_t seed, bool trace)
      : seed_(seed),
        trace_(trace),
        dice_(seed),
        etcd_(dice_.next()),
        oracle_([this](const std::string& what) { violated(what); }) {
    oracle_.on_answer = [this] { check_one_leads(); };
    for (size_t i = 0; i < 2 + seed % 2; ++i)
      servers_.push_back(std::make_unique<LogServer>(i, etcd_, oracle_, dice_.next()));
  }

  Totals run() {
    simulated::Scheduler::current().spawn([this] { etcd_.run(); });
    for (size_t i = 0; i < servers_.size(); ++i) keep_running(i);
    sleep_for(Milliseconds(1000));
    for (uint64_t left = 10; left > 0; --left) {
      fault();
      ++totals_.faults;
      const auto until = steady_now() + (dice_.one_in(3) ? Milliseconds(dice_.below(10'000))
                                                         : Milliseconds(dice_.below(2000)));
      while (steady_now() < until) {
        sleep_for(Milliseconds(50));
        check_one_leads();
        if (dice_.one_in(60)) etcd_.set_troubled(dice_.one_in(2));
      }
    }
    end();
    totals_.answers = oracle_.answers;
    for (const auto& server : servers_) totals_.terms += server->terms();
    return totals_;
  }

 private:
  // As systemd does.
  void keep_running(size_t index) {
    simulated::Scheduler::current().spawn([this, index] {
      for (;;) {
        LogServer& server = *servers_[index];
        if (!server.runs() && steady_now() >= down_until_[index]) {
          trace("server " + std::to_string(index) + " starts");
          server.start();
        }
        sleep_for(Milliseconds(dice_.between(20, 1000)));
      }
    });
  }

  void fault() {
    const size_t index = dice_.below(servers_.size());
    LogServer& server = *servers_[index];
    const std::string name = "server " + std::to_string(index);
    const Milliseconds time(dice_.one_in(2) ? dice_.below(12'000) : dice_.below(1500));
    const std::string for_so_long = " for " + std::to_string(time.count()) + " ms";
    switch (dice_.below(7)) {
      case 0:
      case 1: {
        const bool host = dice_.one_in(2);
        trace(name + (host ? "'s host" : "") + " dies" + for_so_long);
        down_until_[index] = steady_now() + time;
        server.kill(host);
        break;
      }
      case 2:
        trace(name + " is stopped" + for_so_long);
        down_until_[index] = steady_now() + time;
        server.stop();
        break;
      case 3:
        trace(name + " is paused" + for_so_long);
        server.pause(time);
        break;
      case 4:
      case 5:
        trace(name + " is cut off" + for_so_long);
        etcd_.cut(index, true);
        later(time, [this, index] { etcd_.cut(index, false); });
        break;
      case 6:
        trace("etcd loses its quorum" + for_so_long);
        etcd_.lose_quorum(true);
        later(time, [this] { etcd_.lose_quorum(false); });
        break;
    }
  }

  void later(Milliseconds time, std::function<void()> what) {
    simulated::Scheduler::current().spawn([time, what = std::move(what)] {
      sleep_for(time);
      what();
    });
  }

  void check_one_leads() {
    size_t leading = 0;
    for (const auto& server : servers_) leading += server->leads() ? 1 : 0;
    if (leading > 1) violated("two servers lead at once");
  }

  // Without faults somebody serves, and the others have the same.
  void end() {
    trace("all is well from now on");
    etcd_.heal();
    for (auto& until : down_until_) until = {};
    sleep_for(Milliseconds(13'000));  // pauses, cuts and requests of before are over
    etcd_.heal();
    const SteadyTime limit = steady_now() + kServedWithin;
    const uint64_t before = oracle_.answers;
    while (oracle_.answers < before + 20) {
      if (steady_now() > limit) violated("nobody serves, though nothing is wrong");
      sleep_for(Milliseconds(100));
    }
    for (const auto& server : servers_) server->quiet();
    sleep_for(Milliseconds(4000));
    std::vector<mds::MemoryStore::Content> all;
    for (const auto& server : servers_) {
      if (!server->runs()) violated("a server does not run, though nothing is wrong");
      all.push_back(server->content());
      if (all.back() != all.front()) violated("two servers do not have the same");
    }
    for (uint64_t number = 1; number <= oracle_.newest(); ++number) {
      if (oracle_.was_acknowledged(number) && !all.front().contains(LogOracle::key_of(number)))
        violated(LogOracle::key_of(number) + " was acknowledged, and nobody has it");
    }
  }

  void trace(const std::string& what) const {
    if (trace_) std::fprintf(stderr, "%10.3f %s\n", seconds(), what.c_str());
  }
  double seconds() const {
    return std::chrono::duration<double>(simulated::Scheduler::current().look() - begun_).count();
  }
  [[noreturn]] void violated(const std::string& what) const {
    std::fprintf(stderr, "seed %llu at %.3f s: %s\n", static_cast<unsigned long long>(seed_), seconds(),
                 what.c_str());
    _exit(1);
  }

  const uint64_t seed_;
  const bool trace_;
  Dice dice_;
  ModelEtcd etcd_;
  LogOracle oracle_;
  std::vector<std::unique_ptr<LogServer>> servers_;
  std::array<SteadyTime, 3> down_until_{};
  const SteadyTime begun_ = simulated::Scheduler::current().look();
  Totals totals_;
};

Totals run(uint64_t seed, bool trace) {
  simulated::Scheduler scheduler(seed);
  Totals totals;
  scheduler.run(
      [&] {
        // Others know it to the end, which is that of the process.
        totals = (new World(seed, trace))->run();
      },
      [&](const std::string& waiting) {
        std::fprintf(stderr, "seed %llu: nobody can go on:\n%s", static_cast<unsigned long long>(seed),
                     waiting.c_str());
        _exit(1);
      });
  return totals;
}

bool add_apart(uint64_t seed, Totals& sum) {
  const auto totals = run_apart(seed, kProcessorSecondsMax, [seed] { return run(seed, false); });
  if (!totals) return false;
  sum.answers += totals->answers;
  sum.terms += totals->terms;
  sum.faults += totals->faults;
  return true;
}

}  // namespace
}  // namespace pnfsrdma::sim

int main(int count, char** arguments) {
  using namespace pnfsrdma;
  if (count < 2 || count > 3 || arguments[1][0] == '-') {
    std::fprintf(stderr,
                 "usage: log_sim SEED         one, with a trace\n       log_sim SEED COUNT   so many from "
                 "that one on\n");
    return 2;
  }
  const uint64_t first = std::strtoull(arguments[1], nullptr, 10);
  const bool one = count == 2;
  // Written or not, the same steps: a trace must not change the run.
  set_log_level(LogLevel::kInfo);
  write_log_with([one](LogLevel, std::string_view, std::string_view text) {
    if (one) std::fprintf(stderr, "             %s\n", std::string(text).c_str());
  });
  if (one) {
    const sim::Totals totals = sim::run(first, true);
    std::printf("seed %llu is well: %llu answers\n", static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(totals.answers));
    return 0;
  }
  const uint64_t seeds = std::strtoull(arguments[2], nullptr, 10);
  sim::Totals sum;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    if (!sim::add_apart(seed, sum)) return 1;
  }
  std::printf("%llu seeds are well: %llu answers, %llu terms of a leader, %llu faults\n",
              static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(sum.answers),
              static_cast<unsigned long long>(sum.terms), static_cast<unsigned long long>(sum.faults));
  return 0;
}
