// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <string>

#include "server/console/history.h"
#include "tests/unit/mds/admin/admin_world.h"

// How long the longest turn of the MDS's control loop is while each of its views is taken, and while a file with many
// extents is committed: processor time, with as much held as asked for.
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
    fmt::print("{:<44} {:>12} {:>8} {:>12}\n", "", "longest, ms", "turns", "all, ms");
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
    measure("COMMIT of a file with many extents", [&](auto done) {
      world_.layouts.mds->io().commit(file_, 0, 0, [done](const auto&) { done(); });
    });
    measure("LAYOUTCOMMIT of it", [&](auto done) {
      auto& table = const_cast<LayoutTable&>(world_.layouts.mds->table());
      HeldLayout& layout = table.add(file_, kAlice, {});
      const uint64_t step = size_.extents * 2 * kGrainSize / size_.grants;
      const uint64_t end = step * size_.grants;
      for (uint64_t at = 0; at < end; at += step)
        table.add_grant(layout, {.grant = at + 1, .file = {at, at + step}, .logical = at, .writable = true});
      begun_ = milliseconds();
      CommitRequest request{.client = kAlice, .inode = file_, .stateid = layout.advance(), .range = {0, end}};
      request.persist = {{0, end}};
      world_.layouts.mds->committer().commit(request, [done](const auto& answer) {
        EXPECT_TRUE(answer) << static_cast<int>(answer.error());
        done();
      });
    });
    measure("sessions balanced", [&](auto done) {
      world_.server.sessions.balance();
      done();
    });
  }

 private:
  void fill() {
    std::vector<ClientId> clients;
    for (size_t i = 0; i < size_.clients; ++i) clients.push_back(world_.add_client(size_.sessions));
    const InodeId open = world_.layouts.create("open");
    for (size_t i = 0; i < size_.opens; ++i) world_.add_open(clients[i % clients.size()], open);
    for (size_t i = 0; i < size_.layouts; ++i) world_.add_layout(clients[i % clients.size()], 1000 + i / 16);
    world_.add_layout(clients.front(), 7'000'000, size_.grants);
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
    begin([&] { ended = true; });
    note(begun_);
    while (!ended) {
      begun_ = milliseconds();
      world_.layouts.loop.run_once(Milliseconds(0));
      note(begun_);
    }
    fmt::print("{:<44} {:>12.2f} {:>8} {:>12.1f}\n", what, longest, turns, all);
    settle();
  }

  const Size size_;
  AdminWorld world_{16384};
  console::History history_;
  console::Activity activity_;
  InodeId file_ = kNoInode;
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
  pnfsrdma::set_log_level(pnfsrdma::LogLevel::kError);
  pnfsrdma::mds::testing::Measurement(size).run();
  return 0;
}
