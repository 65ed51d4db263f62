// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/console/administration.h"
#include "server/console/inventory.h"
#include "server/mds/admin/block_map.h"
#include "server/mds/bricks/brick_jobs.h"
#include "server/mds/bricks/brick_observer.h"
#include "server/mds/bricks/brick_set.h"
#include "server/mds/grants/layout_table.h"
#include "server/mds/meta/extents.h"
#include "shared/base/clock.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// What an administrator sees of the bricks and does to them while the server runs. A brick is named by its
// uuid_text(), one that was never reached by "new-<number>". Control loop only; `done` is
// called once, at once or later.
class BrickAdministration {
 public:
  template <typename T>
  using Done = std::function<void(Result<T>)>;
  template <typename T>
  using Later = console::Administration::Later<T>;

  struct Parts {
    EventLoop& loop;
    const Clock& clock;
    KeyValueStore& store;
    BrickList& list;
    BrickSet& bricks;
    const LayoutTable& table;
  };

  explicit BrickAdministration(const Parts& parts);
  BrickAdministration(const BrickAdministration&) = delete;
  BrickAdministration& operator=(const BrickAdministration&) = delete;

  // --- what is; at once, counters not older than a second ---
  std::vector<console::Brick> bricks();
  // Where they are, as JSON in the form of the configuration file.
  std::string addresses_text() const;
  // ENOENT
  Result<BrickNumber> find(const std::string& id) const;
  console::Brick describe(BrickNumber number);
  // The clients' data connections and grants, as the brick tells them. Null: it has not yet.
  std::shared_ptr<const std::vector<brick::SessionEntry>> sessions(BrickNumber number) {
    return observer_.latest(number).sessions;
  }
  // What each usable brick says, by its name.
  std::vector<std::pair<std::string, const BrickObservation&>> observations();
  // In the last ten minutes the brick refused somebody because of a limit that all clients share.
  bool met_limit_lately(BrickNumber number) const;
  const brick::StatisticsResult& statistics(BrickNumber number) {
    return observer_.latest(number).statistics;
  }
  // `name` fills in path and client of each grant. Looks at the layouts as walk_layouts() does, then at dying grants of
  // kIdsPerTurn files a turn: one that begins to die meanwhile is seen at least once. ENOENT; EAGAIN: the brick is not
  // ready.
  void block_map(const std::string& id, std::function<void(MappedGrant&)> name,
                 Done<Later<console::BlockMap>> done);
  // Files with data on the brick: their number, and the first kInodesNamed of them. Reads all extents there are,
  // kExtentsPerTurn a turn. ENOENT, EIO.
  struct Holders {
    uint64_t files = 0;
    uint64_t bytes = 0;
    std::vector<InodeId> inodes;
  };
  static constexpr size_t kInodesNamed = 4096;
  static constexpr size_t kExtentsPerTurn = 2048;
  void holders(const std::string& id, Done<Holders> done);
  // Why it can be neither removed nor formatted now; empty: nothing is on it. ENOENT.
  Result<std::string> why_in_use(const std::string& id) const;

  // --- changes: durable when `done` ---
  // A brick that runs, is formatted, and is no other server's. EINVAL: no address; EEXIST: in use already;
  // EHOSTUNREACH: no connection can be made, which is answered at once, or the brick says nothing within
  // kAddPatience; EBUSY: it is another server's. It is shown when it is ready; after an error the list is as
  // before.
  void add(const std::string& address, Done<console::Brick> done);
  // ENOENT; EBUSY: files have data on it, or are getting it. A brick that is away keeps this server's name
  // until it is formatted.
  void remove(const std::string& id, Done<void> done);
  // Draining: it gets no new data; removing files empties it. ENOENT.
  void set_draining(const std::string& id, bool draining, Done<void> done);
  // What people call it; empty: nothing. ENOENT; EEXIST: another one is called so; EINVAL: too long.
  void set_name(const std::string& id, const std::string& name, Done<void> done);

  // --- jobs; ENOENT by on_end ---
  CancelJob format(const std::string& id, BrickJobEvents events);
  CancelJob check(const std::string& id, BrickJobEvents events);

 private:
  struct Survey;
  struct Count;

  void count_next(const std::shared_ptr<Count>& work);
  void survey_next(const std::shared_ptr<Survey>& work);
  void await(BrickNumber number, SteadyTime deadline, Done<console::Brick> done);
  void update(const BrickRecord& record, Done<void> done);
  void forget(BrickNumber number, std::function<void(Result<>)> done);
  void add_grants(const std::shared_ptr<Survey>& work);
  void add_dying(const std::shared_ptr<Survey>& work);
  void add_grant(Survey& work, uint64_t client, uint64_t inode, const HeldGrant& grant);

  Parts parts_;
  BrickObserver observer_;
  std::set<BrickNumber> being_added_;
  Lifetime lifetime_;
};

inline constexpr Milliseconds kAddPatience{10'000};

}  // namespace pnfsrdma::mds
