// SPDX-License-Identifier: Apache-2.0
#include "server/mds/check_command.h"

#include <fmt/core.h>

#include <optional>

#include "server/mds/brick_address.h"
#include "server/mds/brick_tls.h"
#include "server/mds/meta/brick_list.h"
#include "server/mds/meta/namespace_check.h"
#include "server/mds/meta/rocksdb_store.h"
#include "shared/base/bytes.h"
#include "shared/base/event_loop.h"
#include "shared/brick/client.h"

namespace pnfsrdma::mds {

namespace {

inline constexpr Milliseconds kBrickWait{3000};
inline constexpr Milliseconds kTurn{50};

// Runs the loop until `ready`, or for too long.
template <typename Ready>
bool run_until(EventLoop& loop, Ready ready) {
  const SteadyTime deadline = loop.now() + kBrickWait;
  while (!ready() && loop.now() < deadline) loop.run_once(kTurn);
  return ready();
}

// Everything the brick holds; nothing if it does not answer.
std::optional<std::vector<brick::Run>> list_blocks(EventLoop& loop, brick::BrickClient& client) {
  std::vector<brick::Run> runs;
  for (uint64_t from = 0;;) {
    std::optional<Result<brick::ListResult>> page;
    client.list({.from = from, .limit = brick::kRunsMax},
                [&](Result<brick::ListResult> result) { page = std::move(result); });
    if (!run_until(loop, [&] { return page.has_value(); })) return std::nullopt;
    if (!*page || (*page)->status != brick::Status::kOk) return std::nullopt;
    for (const brick::ListedRun& listed : (*page)->runs) runs.push_back(listed.run);
    if ((*page)->end || (*page)->runs.empty()) return runs;
    const brick::Run& last = runs.back();
    from = last.logical + last.count * brick::kBlockSize;
  }
}

void print_runs(const char* what, const std::vector<brick::Run>& runs) {
  for (const brick::Run& run : runs) {
    fmt::print("problem: {} blocks at logical address {:#x} {}\n", run.count, run.logical, what);
  }
}

// What answers at the brick's address; nothing if nobody does.
std::optional<brick::IdentifyResult> identify(EventLoop& loop, brick::BrickClient& client) {
  std::optional<Result<brick::IdentifyResult>> found;
  client.identify([&](Result<brick::IdentifyResult> result) { found = std::move(result); });
  if (!run_until(loop, [&] { return found.has_value(); }) || !*found) return std::nullopt;
  return **found;
}

// Problems found between the brick and the extents.
Result<size_t> check_brick(EventLoop& loop, const BrickTls& tls, const BrickList& list,
                           const BrickRecord& record, const std::string& address) {
  brick::BrickClient client(
      loop, {.address = brick_address(address), .tls = [&] { return tls.endpoint_for(address, record.tls); }},
      {});
  client.start();
  if (!run_until(loop, [&] { return client.connected(); })) {
    fmt::print("brick {}: does not answer, its blocks were not compared\n", address);
    return 0;
  }
  const auto found = identify(loop, client);
  if (found && record.claimed_before() && found->uuid != record.uuid) {
    fmt::print("problem: brick {}: is {}, not {}\n", address, uuid_text(found->uuid), uuid_text(record.uuid));
    return 1;
  }
  const auto listed = list_blocks(loop, client);
  if (!listed) {
    fmt::print("brick {}: does not list its blocks\n", address);
    return 1;
  }
  const SpaceDifference difference = list.space(record.number).compare(*listed);
  print_runs("are on the brick and in no file", difference.leaked);
  print_runs("belong to a file and are not on the brick", difference.missing);
  return difference.leaked.size() + difference.missing.size();
}

Result<size_t> check(const Config& config) {
  SystemClock clock;
  EventLoop loop(clock);
  TRY_ASSIGN(const auto tls, BrickTls::open(config));
  TRY_ASSIGN(const auto store, RocksdbStore::open(loop, {.path = metadata_path(config), .create = false}));
  TRY_ASSIGN(const NamespaceReport report, check_namespace(*store));
  fmt::print("inodes {} directories {} names {} orphans {} extents {} bytes {}\n", report.inodes,
             report.directories, report.names, report.orphans, report.extents, report.extent_bytes);
  for (const std::string& problem : report.problems) fmt::print("problem: {}\n", problem);
  size_t problems = report.problems.size();
  TRY_ASSIGN(const auto list, BrickList::open(*store, clock));
  for (const BrickNumber number : list->numbers()) {
    const BrickRecord& record = *list->find(number);
    // A store of format 1 does not say where its brick is.
    const bool told = !record.address.empty() || config.bricks.empty();
    TRY_ASSIGN(const size_t found,
               check_brick(loop, *tls, *list, record, told ? record.address : config.bricks.front()));
    problems += found;
  }
  TRY(store->close());
  return problems;
}

}  // namespace

int run_check(const Config& config) {
  const auto problems = check(config);
  if (!problems) {
    fmt::print(stderr, "pnfsrdma-mdsd: {}\n", problems.error().to_string());
    return 2;
  }
  fmt::print("{}\n", *problems == 0 ? "sound" : "not sound");
  return *problems == 0 ? 0 : 1;
}

int run_accept_loss(const Config& config) {
  SystemClock clock;
  EventLoop loop(clock);
  const std::string path = metadata_path(config);
  Result<> taken = [&]() -> Result<> {
    TRY_ASSIGN(const auto store,
               RocksdbStore::open(loop, {.path = path, .create = false, .accept_loss = true}));
    return store->close();
  }();
  if (!taken) {
    fmt::print(stderr, "pnfsrdma-mdsd: {}\n", taken.error().to_string());
    return 2;
  }
  fmt::print("the metadata store {} can be used\n", path);
  return 0;
}

}  // namespace pnfsrdma::mds
