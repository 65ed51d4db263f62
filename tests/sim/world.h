// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <list>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "shared/base/random.h"
#include "tests/doubles/seeded_random.h"
#include "tests/sim/held_locks.h"
#include "tests/sim/model_client.h"
#include "tests/sim/model_server.h"
#include "tests/sim/real_mds.h"

namespace pnfsrdma::sim {

class Snapshots;

// What clients do to each other's files: nothing (each has its own), all but truncation, anything.
enum class Sharing { kNone, kNoTruncation, kAnything };

struct RunOptions {
  uint64_t seed = 1;
  Sharing sharing = Sharing::kNone;
  // A descriptor is closed by a forked child and lives on.
  bool forks = false;
  // Logs: clients append to the same two files, in turns and at once.
  bool appends = false;
  size_t operations = 2000;
  bool trace = false;
  // The MDS itself, not the model of it.
  bool real_mds = false;
  bool no_faults = false;
  // Leases are short and end by themselves: of clients that are kept from the MDS for longer, and of dead ones, but
  // where they are back before.
  bool leases_end = false;
  // The MDS forgets opens, without a word.
  bool disowned = false;
  bool revoked = false;
  // Clients open files to read them, too, ask for delegations, keep pages, lock, and change each other's attributes and
  // names.
  bool delegations = false;
  // Files, and parts of them, are cloned now and then, and the clone is what the file was; so is one out of a
  // snapshot.
  bool clones = false;
  // The administrator takes snapshots and deletes them, and clients read in them.
  bool snapshots = false;
  // The real MDS counts what users and groups have.
  bool quotas = false;
};

// What one run is made of: bricks, an MDS, clients, what is known of them, and how a violation ends it.
class World {
 public:
  explicit World(const RunOptions& options);
  ~World();

  const RunOptions options;
  Dice dice;
  const Milliseconds lease;
  SeededRandom random;
  SystemClock clock;
  Network network;
  std::vector<std::unique_ptr<Brick>> bricks;
  MdsNetwork mds_network;
  // Either the model of the MDS, or itself.
  std::unique_ptr<ModelMds> mds;
  std::unique_ptr<ModelServer> server;
  std::unique_ptr<RealMds> real_mds;
  Oracle oracle;
  HeldLocks locks;
  std::vector<std::unique_ptr<ModelClient>> clients;

  // What a client has cloned of a file, once it knows that it did: it stays that.
  std::map<size_t, std::vector<std::byte>> clones;  // by client
  Snapshots* snapshots = nullptr;                   // while the workload runs
  // Of before, as run_workload() leaves them.
  struct SnapshotCounts {
    uint64_t taken = 0, failed = 0, removed = 0, unknown = 0, read = 0;
  } snapshot_counts;

  // The host of a client dies, wherever its fibers are. What the MDS has of it ends with its lease, or when it
  // starts again.
  bool alive(size_t client) const;
  void crash(size_t client);
  void expire(size_t client);
  void start(size_t client);
  // Waits until nothing comes any more of the one that has crashed, however that comes about.
  void wait_for_fence(size_t client, uint64_t incarnation);
  simulated::Bell started;

  // --- the MDS, whichever it is
  bool mds_up() const;
  void wait_for_mds();
  // `host`: with what it has not synced. The model is asked nothing.
  void stop_mds(bool host);
  void start_mds();
  // How far what this client is told may lag behind now: it has not been told of a recall, and what it holds was
  // revoked before it could hear of it.
  SteadyTime::duration lag(size_t client) const;
  void stop_brick(size_t brick, bool lose);
  void start_brick(size_t brick);
  uint64_t revocations() const;
  uint64_t opens_under_delegation() const;  // by the clients of now
  uint64_t held_writes() const;             // by the same

  uint64_t lockers = 0;  // so many owners of locks there were

  // Totals.
  size_t operations = 0, faults = 0, errors = 0;
  // Faults that are not over; when the last one was.
  int disturbed = 0;
  SteadyTime calm_since;

  template <typename... Args>
  void trace(fmt::format_string<Args...> format, Args&&... args) {
    if (options.trace) say(fmt::format(format, std::forward<Args>(args)...));
  }
  // Ends the process: the seed has failed.
  [[noreturn]] void violated(const std::string& what);

 private:
  void say(const std::string& line) const;
  void make_model(size_t& clients);
  void make_real();
  void watch_losses(size_t brick);
  ModelClient::Served served();
};

inline constexpr size_t kBricks = 2, kFiles = 6, kClientsMax = 3;
inline constexpr uint64_t kBytesMax = uint64_t{2} << 20;  // of a file
// Behind the others: each client has one that it clones to.
constexpr size_t clone_of(size_t client) {
  return kFiles + client;
}

// Does what applications do until `world.options.operations` are done, then checks that everything is well.
void run_workload(World& world);
// Breaks things meanwhile, until told to end; then heals them all.
class Faults {
 public:
  explicit Faults(World& world);
  void end();
  // Beside all else, if it is up then.
  void restart_mds_in(SteadyTime::duration time);

 private:
  void work();
  void one();
  // Those that the MDS itself can take.
  void one_real();
  void crash_client();
  void leave_to_lease(size_t client, uint64_t incarnation, SteadyTime::duration time);
  void partition_brick(size_t client, size_t brick, SteadyTime::duration time);
  void partition_brick();
  void partition_mds();
  void cut_mds();
  void restart_brick(bool lose);
  void restart_mds();
  void withhold_callbacks();
  void recall();
  void recall_all();
  void order_error();
  // Goes on for a while, beside what comes next.
  void meanwhile(std::function<void()> body);

  World& world_;
  Dice dice_;
  bool ending_ = false;
  std::set<size_t> leaving_;  // dead clients, or those of before of living ones, whose lease has not ended
  std::list<simulated::Thread> going_on_;
  simulated::Thread thread_;
};

}  // namespace pnfsrdma::sim
