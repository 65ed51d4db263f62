// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>

#include "server/console/history.h"
#include "shared/base/heap_settings.h"
#include "tests/unit/mds/admin/admin_world.h"

// How long the longest turn of the MDS's control loop is while each of its views is taken, while something is done
// with a file of many extents or a layout of many grants, and while clients and bricks end: processor time, with as
// much held as asked for.
namespace pnfsrdma::mds::testing {
namespace {

struct Size {
  size_t clients = 4096;
  size_t sessions = 2;  // of each
  size_t opens = 1'000'000;
  size_t layouts = 100'000;
  size_t grants = 65'536;    // of one layout
  size_t extents = 200'000;  // of one file
  size_t files = 4096;       // more, with a grain each
  uint16_t exports = 1000;
  size_t bricks = 8;  // that tell what each client moves
};

double milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

class Measurement {
 public:
  explicit Measurement(const Size& size) : size_(size) { fill(); }

  void run() {
    print_head();
    measure_views();
    measure_commits();
    measure_opens();
    measure_away();
    measure_tail();
    measure_layouts();
    measure_holes();
    measure_readers();
    measure_writers();
    measure_snapshots();
    measure_dying();
    measure_brick_lost();
    measure_blocks();
    measure_expiry();
  }

 private:
  static void print_head() {
    fmt::print("{:<44} {:>12} {:>8} {:>12}\n", "", "longest, ms", "turns", "all, ms");
  }
  void measure_views() {
    auto& view = world_.administrator;
    measure("counters (numbers)", [&](auto done) {
      view.numbers();
      done();
    });
    console::Administration::Later<console::Activity> later;
    measure("activity", [&](auto done) {
      view.activity([&later, done](auto activity) {
        later = *std::move(activity);
        done();
      });
    });
    activity_ = later();
    add_traffic();
    const console::Numbers numbers = view.numbers();
    history_.add(numbers, activity_);
    measure("history, of that (not in the loop)", [&](auto done) {
      history_.add(numbers, activity_);
      done();
    });
    measure("effect of an export (who is mounted)",
            [&](auto done) { view.export_effect({.path = "/inner"}, [done](const auto&) { done(); }); });
    measure("holdings", [&](auto done) { view.holdings([done](const auto&) { done(); }); });
    measure("block map", [&](auto done) {
      view.block_map(view.numbers().bricks.front().id, [done](const auto&) { done(); });
    });
    measure("file that is open a million times",
            [&](auto done) { view.file("/open", [done](const auto&) { done(); }); });
    measure("holders of a brick", [&](auto done) {
      view.holders(view.numbers().bricks.front().id, [done](const auto&) { done(); });
    });
    measure("sessions balanced", [&](auto done) {
      world_.server.sessions.balance();
      done();
    });
  }
  void measure_commits() {
    measure("COMMIT of a file with many extents", [&](auto done) {
      world_.layouts.mds->io().commit(file_, 0, 0, [done](const auto&) { done(); });
    });
    measure("LAYOUTCOMMIT of it", [&](auto done) {
      HeldLayout& layout = table().add(file_, kAlice, {});
      const uint64_t step = size_.extents * 2 * kGrainSize / size_.grants;
      const uint64_t end = step * size_.grants;
      for (uint64_t at = 0; at < end; at += step)
        table().add_grant(layout,
                          {.grant = at + 1, .file = {at, at + step}, .logical = at, .writable = true});
      begun_ = milliseconds();
      CommitRequest request{.client = kAlice, .inode = file_, .stateid = layout.advance(), .range = {0, end}};
      request.persist = {{0, end}};
      world_.layouts.mds->committer().commit(request, [done](const auto& answer) {
        EXPECT_TRUE(answer) << static_cast<int>(answer.error());
        done();
      });
    });
    table().erase(file_, kAlice);
  }
  // One client, one file.
  void measure_opens() {
    const InodeId file = world_.layouts.create("opened");
    for (size_t i = 0; i < size_.opens; ++i) world_.add_open(kAlice, file);
    measure("who may write a file that one has often open", [&](auto done) {
      EXPECT_FALSE(world_.server.opens.is_written_by_others(file, kAlice));
      EXPECT_EQ(world_.server.opens.access_of_client(file, kAlice), kShareRead);
      done();
    });
  }
  // The last extent of a file is on a brick that does not answer.
  void measure_away() {
    const std::string second = world_.layouts.addresses()[1];
    away_ = world_.layouts.create_sparse("away", size_.extents);
    add_extent(away_, {size_.extents * 2 * kGrainSize, uint64_t{1} << 48, kGrainSize});
    world_.layouts.plug.down(second);
    settle();
    measure("SETATTR of its size, a brick away", [&](auto done) {
      world_.layouts.mds->conflicts().set_size(away_, 1, kBob, [done](nfs4::Status status) {
        EXPECT_EQ(status, nfs4::Status::kDelay);
        done();
      });
    });
    measure("LAYOUTGET of it", [&](auto done) {
      GrantRequest request{.client = kBob, .inode = away_, .mode = IoMode::kRead};
      request.range = {0, kEndOfFile};
      request.min_length = 1;
      request.max_bytes = 65536;
      world_.layouts.mds->granter().grant(request, [done](const LayoutGranter::Answer&) { done(); });
    });
    // What it has behind its end is somebody's to zero when the brick is back; somebody may read it.
    Batch batch;
    Extents::mark_tail_dirty(batch, away_);
    EXPECT_TRUE(world_.layouts.names->update(away_, {.size = 1}, batch));
    add_grant(kAlice, away_, {.grant = 1, .file = {0, kEndOfFile}, .logical = 0, .writable = false});
    measure_until(
        "the brick is back, its tail is zeroed", [&] { world_.layouts.plug.up(second); },
        [&] { return world_.layouts.mds->ready(); });
  }
  void measure_tail() {
    add_grant(kAlice, file_, {.grant = 2, .file = {0, kEndOfFile}, .logical = 0, .writable = false});
    Batch batch;
    Extents::mark_tail_dirty(batch, file_);
    EXPECT_TRUE(world_.layouts.names->update(file_, {.size = 1}, batch));
    measure("SETATTR of a size, behind a dirty tail", [&](auto done) {
      world_.layouts.mds->conflicts().set_size(file_, 2, kBob, [done](nfs4::Status) { done(); });
    });
  }
  void measure_layouts() {
    auto& layouts = world_.layouts.mds->layouts();
    measure("LAYOUTRETURN of many grants", [&](auto done) {
      layouts.give_back(first_client_, kManyGrants, {0, kEndOfFile}, IoMode::kAny, done);
    });
    for (size_t i = 0; i < size_.layouts; ++i) world_.add_layout(kBob, 8'000'000 + i);
    measure("LAYOUTRETURN of many layouts",
            [&](auto done) { layouts.give_back_all(kBob, IoMode::kAny, done); });
    world_.add_layout(kBob, kManyGrants, size_.grants);
    measure("end of a client with many grants",
            [&](auto done) { world_.layouts.mds->conflicts().on_client_gone(kBob, done); });
  }
  // A file with a hole behind each extent.
  void measure_holes() {
    const size_t extents = std::min<size_t>(size_.extents, 20'000);
    const InodeId file = world_.layouts.create_sparse("holes", extents);
    GrantRequest request{.client = kReader, .inode = file, .mode = IoMode::kRead};
    request.range = {0, kEndOfFile};
    request.min_length = 1;
    request.max_bytes = 1 << 20;
    const auto ask = [&](auto done) {
      world_.layouts.mds->granter().grant(request, [done](const LayoutGranter::Answer&) { done(); });
    };
    measure("LAYOUTGET, 1 MiB of it, to read", ask);
    request.mode = IoMode::kReadWrite;
    request.min_length = 8000 * 2 * kGrainSize;
    measure("LAYOUTGET, 8,000 holes, to write", ask);
    // Who was told of holes is asked before they are filled, and nobody answers here.
    measure("LAYOUTRETURN of it",
            [&](auto done) { world_.layouts.mds->layouts().give_back_all(kReader, IoMode::kAny, done); });
    measure("ALLOCATE over many holes", [&](auto done) {
      world_.layouts.mds->ranges().allocate({.client = kBob, .inode = file}, {0, extents * 2 * kGrainSize},
                                            [done](nfs4::Status status) {
                                              EXPECT_EQ(status, nfs4::Status::kOk);
                                              done();
                                            });
    });
  }
  // As many grants as a brick has room for, of one file; nobody writes.
  void measure_readers() {
    const InodeId file = world_.layouts.create("read");
    for (const ClientId client : {kAlice, kBob, ClientId{1003}, ClientId{1004}}) {
      for (uint64_t at = 0; at < size_.grants * kGrainSize; at += kGrainSize)
        add_grant(client, file, {.grant = at + client, .file = {at, at + kGrainSize}, .logical = 2 * at});
    }
    measure("who may write a file that many read", [&](auto done) {
      EXPECT_FALSE(table().writable(file));
      EXPECT_FALSE(world_.layouts.mds->layouts().may_be_written_by_others(file, kAlice));
      done();
    });
  }
  void measure_writers() {
    auto& layouts = world_.layouts.mds->layouts();
    const InodeId file = world_.layouts.create("written");
    constexpr uint64_t kStep = 4 * kGrainSize;
    for (const ClientId client : {kAlice, kBob}) {
      for (uint64_t at = 0; at < size_.grants * kStep; at += kStep) {
        add_grant(client, file,
                  {.grant = at + client, .file = {at, at + kGrainSize}, .logical = at, .writable = true});
      }
    }
    layouts.give_back(kAlice, file, {0, kEndOfFile}, IoMode::kAny, [] {});
    settle();
    measure("LAYOUTCOMMIT over what another one left", [&](auto done) {
      HeldLayout& layout = *table().find(file, kBob);
      const uint64_t end = size_.grants * kStep;
      CommitRequest request{.client = kBob, .inode = file, .stateid = layout.advance(), .range = {0, end}};
      request.last_write_offset = end - kStep;
      world_.layouts.mds->committer().commit(request, [done](const auto& answer) {
        EXPECT_TRUE(answer) << static_cast<int>(answer.error());
        done();
      });
    });
    const InodeId shared = world_.layouts.create("shared");
    for (const ClientId client : clients_) world_.add_layout(client, shared);
    size_t asked = 0;
    world_.layouts.recaller.on_recall = [&](const LayoutRecall&) { ++asked; };
    measure_until(
        "who appends to a file that all clients had",
        [&] { EXPECT_FALSE(layouts.end_is_free(shared, kAlice, 0)); },
        [&] { return asked >= clients_.size(); });
    world_.layouts.recaller.on_recall = nullptr;
  }
  void measure_snapshots() {
    auto& layouts = world_.layouts.mds->layouts();
    measure("whether nobody writes any file", [&](auto done) { layouts.is_still([done](bool) { done(); }); });
    for (const ClientId client : clients_) world_.add_layout(client, inode_in(1, 1000));
    measure_until(
        "the end of a snapshot that all clients read", [&] { layouts.end_snapshot(1, [] {}); },
        [&] { return !table().in_use(inode_in(1, 1000)); });
  }
  void measure_dying() {
    FakeBrick& brick = world_.layouts.brick;
    brick.hold_withdrawals = true;
    const InodeId file = world_.layouts.create("dying");
    for (size_t i = 0; i < 4; ++i) {
      world_.add_layout(clients_[i], file, size_.grants);
      world_.layouts.mds->layouts().give_back(clients_[i], file, {0, kEndOfFile}, IoMode::kAny, [] {});
    }
    settle();
    auto& view = world_.administrator;
    measure("block map, with many grants that are dying", [&](auto done) {
      view.block_map(view.numbers().bricks.front().id, [done](const auto&) { done(); });
    });
    brick.release();
    settle();
  }
  // Of a pool of a terabyte, every second one in use.
  void measure_blocks() {
    constexpr size_t kRuns = 262'144;
    Space space(world_.layouts.store, world_.layouts.clock, {});
    std::vector<LogicalRange> used;
    std::vector<brick::Run> listed;
    for (uint64_t i = 1; i <= kRuns; ++i) {
      used.push_back({2 * i * brick::kBlockSize, brick::kBlockSize});
      listed.push_back({2 * i * brick::kBlockSize, 1});
    }
    GrainPool pool;
    pool.use(used);
    space.used(std::move(pool));
    space.give_back(0);
    measure("the blocks of a brick beside ours", [&](auto done) { compare(space, listed, 0, done); });
  }
  // A page as BrickDevice has it, and then the next one.
  void compare(Space& space, const std::vector<brick::Run>& listed, size_t from, std::function<void()> done) {
    const size_t end = std::min<size_t>(listed.size(), from + brick::kListedRunsPerCall);
    const std::vector<brick::Run> page(listed.begin() + static_cast<ptrdiff_t>(from),
                                       listed.begin() + static_cast<ptrdiff_t>(end));
    const uint64_t first = from == 0 ? 0 : listed[from].logical;
    const uint64_t last = end == listed.size() ? UINT64_MAX : listed[end].logical;
    const SpaceDifference difference = space.compare(page, first, last, brick::kListedRunsPerCall);
    EXPECT_TRUE(difference.leaked.empty() && difference.missing.empty());
    if (end == listed.size()) return done();
    world_.layouts.loop.at_next_turn(
        [this, &space, &listed, end, done = std::move(done)] { compare(space, listed, end, done); });
  }
  void measure_brick_lost() {
    world_.add_layout(kAlice, kManyGrants, size_.grants);
    const std::string first = world_.layouts.addresses()[0];
    measure_until(
        "a brick is lost, with many layouts", [&] { world_.layouts.plug.down(first); },
        [&] { return table().layouts() == 0; });
    world_.layouts.brick.restart();
    measure_until(
        "it is back", [&] { world_.layouts.plug.up(first); }, [&] { return world_.layouts.mds->ready(); });
  }
  // Of all clients, with their sessions, opens and layouts.
  void measure_expiry() {
    TestServer& server = world_.server;
    add_layouts();
    LeaseKeeper leases(server.clients, server.sessions, server.opens, server.locks, server.delegations,
                       server.state_store, world_.layouts.mds->conflicts(), server.counters);
    leases.start(world_.layouts.loop, Milliseconds(1000));
    for (int i = 0; i < 30; ++i) {
      world_.host.clock.advance(Milliseconds(1000));
      world_.layouts.clock.advance(Milliseconds(1000));
      settle();
    }
    world_.host.clock.advance(Milliseconds(1000));
    measure_until(
        "all clients expire", [&] { world_.layouts.clock.advance(Milliseconds(1000)); },
        [&] { return server.clients.size() == 0 && table().layouts() == 0; });
    size_t ended = 0;
    measure_until(
        "a start goes on with the end of all clients", [&] { leases.resume(clients_); },
        [&] { return ++ended > 2 * clients_.size(); });
  }

  LayoutTable& table() { return const_cast<LayoutTable&>(world_.layouts.mds->table()); }
  void add_extent(InodeId file, const Extent& extent) {
    Batch batch;
    ExtentChange change(world_.layouts.store, file);
    EXPECT_TRUE(change.insert(extent));
    change.write_to(batch);
    EXPECT_TRUE(world_.layouts.names->update(file, {.size = extent.end()}, batch));
  }
  void add_grant(ClientId client, InodeId file, const HeldGrant& grant) {
    std::array<std::byte, 12> other{std::byte{kLayoutStateidTag}, std::byte{1}};
    store_big_endian(other.data() + 4, file << 16 | client);
    table().add_grant(table().add(file, client, other), grant);
  }
  void add_layouts() {
    for (size_t i = 0; i < size_.layouts; ++i)
      world_.add_layout(clients_[i % clients_.size()], kManyFiles + i / 16);
  }
  void fill() {
    for (size_t i = 0; i < size_.clients; ++i) clients_.push_back(world_.add_client(size_.sessions));
    const InodeId open = world_.layouts.create("open");
    for (size_t i = 0; i < size_.opens; ++i) world_.add_open(clients_[i % clients_.size()], open);
    add_layouts();
    first_client_ = clients_.front();
    world_.add_layout(first_client_, kManyGrants, size_.grants);
    file_ = world_.layouts.create_sparse("file", size_.extents);
    for (size_t i = 0; i < size_.files; ++i) world_.layouts.create_sparse("f" + std::to_string(i), 1);
    for (uint16_t i = 1; i < size_.exports; ++i) {
      Export more;
      more.path = "/export" + std::to_string(i);
      world_.server.exports.add(more);
    }
    settle();
  }
  // Each client moves bytes straight to and from the brick.
  void add_traffic() {
    console::BrickActivity brick;
    for (const console::ClientActivity& client : activity_.clients)
      brick.clients.push_back({client.id, {.read_bytes = 1}});
    for (size_t i = 0; i < size_.bricks; ++i) {
      brick.brick = std::to_string(i);
      activity_.bricks.push_back(brick);
    }
  }
  void settle() {
    for (int i = 0; i < 1000; ++i) world_.layouts.loop.run_once(Milliseconds(0));
  }
  void measure(const char* what, const std::function<void(std::function<void()> done)>& begin) {
    bool ended = false;
    measure_until(what, [&] { begin([&ended] { ended = true; }); }, [&ended] { return ended; });
  }
  void measure_until(const char* what, const std::function<void()>& begin,
                     const std::function<bool()>& ended) {
    double longest = 0;
    double all = 0;
    size_t turns = 0;
    const auto note = [&](double begun) {
      const double took = milliseconds() - begun;
      longest = std::max(longest, took);
      all += took;
      ++turns;
    };
    begun_ = milliseconds();
    begin();
    note(begun_);
    while (!ended()) {
      begun_ = milliseconds();
      world_.layouts.loop.run_once(Milliseconds(0));
      note(begun_);
    }
    fmt::print("{:<44} {:>12.2f} {:>8} {:>12.1f}\n", what, longest, turns, all);
    std::fflush(stdout);
    settle();
  }

  // Files that are none.
  static constexpr InodeId kManyGrants = 7'000'000;
  static constexpr InodeId kManyFiles = 6'000'000;
  static constexpr ClientId kReader = 1005;  // holds nothing else

  const Size size_;
  AdminWorld world_{16384, {64}};
  std::vector<ClientId> clients_;
  ClientId first_client_ = 0;
  console::History history_;
  console::Activity activity_;
  InodeId file_ = kNoInode;
  InodeId away_ = kNoInode;
  double begun_ = 0;  // of this turn, behind what is only set up
};

}  // namespace
}  // namespace pnfsrdma::mds::testing

int main(int count, char** arguments) {
  pnfsrdma::mds::testing::Size size;
  CLI::App app("The longest turns of the control loop of a metadata server that holds so much.");
  app.add_option("--clients", size.clients);
  app.add_option("--sessions", size.sessions, "of each client");
  app.add_option("--opens", size.opens);
  app.add_option("--layouts", size.layouts);
  app.add_option("--grants", size.grants, "of one layout");
  app.add_option("--extents", size.extents, "of one file");
  app.add_option("--files", size.files, "more, with a grain each");
  app.add_option("--exports", size.exports);
  app.add_option("--bricks", size.bricks, "that tell what each client moves");
  CLI11_PARSE(app, count, arguments);
  pnfsrdma::set_heap_for_short_turns();
  pnfsrdma::set_log_level(pnfsrdma::LogLevel::kError);
  pnfsrdma::mds::testing::Measurement(size).run();
  return 0;
}
