// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>

#include "server/console/forecast.h"
#include "server/console/resources.h"
#include "server/console/time_text.h"

namespace pnfsrdma::console {

namespace {

constexpr size_t kTopCount = 10;
constexpr size_t kDay = kHistoryRanges.size() - 1;
static_assert(std::string_view(kHistoryRanges[kDay].name) == "24h");

struct OfName {
  std::string_view name;
  HistoryOf of;
};
constexpr std::array<OfName, 4> kOfNames{{{"server", HistoryOf::kServer},
                                          {"brick", HistoryOf::kBrick},
                                          {"client", HistoryOf::kClient},
                                          {"export", HistoryOf::kExport}}};

HistoryOf of_named(const std::string& name) {
  return std::ranges::find(kOfNames, name, &OfName::name)->of;
}

size_t range_named(const std::string& name) {
  return static_cast<size_t>(
      std::ranges::find(kHistoryRanges, name,
                        [](const HistoryRange& range) { return std::string(range.name); }) -
      kHistoryRanges.begin());
}

// null: not measured for this kind.
template <typename T>
Json if_measured(bool measured, T value) {
  return measured ? Json(value) : Json();
}

Json latency_json(const std::optional<LatencyHistogram>& latency) {
  // Where nothing was called nothing took any time.
  if (!latency || percentile(*latency, 1) == 0) return {};
  return {{"p50", percentile(*latency, 0.50)},
          {"p90", percentile(*latency, 0.90)},
          {"p99", percentile(*latency, 0.99)}};
}

// What is known of the members of a series.
struct Measured {
  bool served;
  bool direct;
  bool used;
};
Measured measured(HistoryOf of, bool direct) {
  return {.served = of != HistoryOf::kBrick,
          .direct = direct,
          .used = of == HistoryOf::kServer || of == HistoryOf::kBrick};
}

Json point_json(const Amounts& amounts, const Measured& known,
                const std::optional<LatencyHistogram>& latency) {
  return {{"covered_ms", amounts.covered_ms},
          {"operations", if_measured(known.served, amounts.operations)},
          {"mds_read_bytes", if_measured(known.served, amounts.mds_read_bytes)},
          {"mds_write_bytes", if_measured(known.served, amounts.mds_write_bytes)},
          {"rdma_read_bytes", if_measured(known.direct, amounts.rdma_read_bytes)},
          {"rdma_write_bytes", if_measured(known.direct, amounts.rdma_write_bytes)},
          {"rdma_reads", if_measured(known.direct, amounts.rdma_reads)},
          {"rdma_writes", if_measured(known.direct, amounts.rdma_writes)},
          {"used_bytes", if_measured(known.used, amounts.used_bytes)},
          {"latency_us", latency_json(latency)}};
}

double per_second(uint64_t amount, uint64_t covered_ms) {
  return covered_ms == 0 ? 0 : static_cast<double>(amount) * 1000 / static_cast<double>(covered_ms);
}

Json client_json(const History::BusyClient& client) {
  const Amounts& amounts = client.amounts;
  const auto rate = [&](uint64_t amount) { return per_second(amount, amounts.covered_ms); };
  return {{"id", client.id},
          {"name", client.name},
          {"operations", rate(amounts.operations)},
          {"mds_read_bytes", rate(amounts.mds_read_bytes)},
          {"mds_write_bytes", rate(amounts.mds_write_bytes)},
          {"rdma_read_bytes", if_measured(client.direct, rate(amounts.rdma_read_bytes))},
          {"rdma_write_bytes", if_measured(client.direct, rate(amounts.rdma_write_bytes))}};
}

Json file_json(const BusyFile& file) {
  return {{"inode", file.inode},
          {"path", file.path ? Json(*file.path) : Json()},
          {"operations", file.operations},
          {"mds_read_bytes", file.read_bytes},
          {"mds_write_bytes", file.write_bytes}};
}

std::string_view name_of(Forecast::Outlook outlook) {
  switch (outlook) {
    case Forecast::Outlook::kUnknown:
      return "unknown";
    case Forecast::Outlook::kSteady:
      return "steady";
    case Forecast::Outlook::kGrowing:
      return "growing";
  }
  return "unknown";
}

}  // namespace

Response get_history(Backend& backend, Call& call) {
  const std::string of = call.query_text("of");
  const std::string range = call.query_text("range");
  const HistoryKey key{of_named(of), call.query_text("id")};
  if ((key.of == HistoryOf::kServer) != key.id.empty()) {
    return std::unexpected(
        Problem{.name = "invalid",
                .detail = "id says which brick, client or export; the server has none.",
                .errors = {{"/id", key.id.empty() ? "is missing" : "is not for the server"}}});
  }
  const auto series = backend.history.get(key, range_named(range), backend.clock.wall_now().seconds);
  if (!series)
    return refuse("not-found", "Nothing is known of the " + of + " " + key.id + " in the last 24 hours.");
  const Measured known = measured(key.of, series->direct);
  Json points = Json::array();
  for (size_t i = 0; i < series->points.size(); ++i) {
    const auto& point = series->points[i];
    const auto latency = series->latency.empty() ? std::nullopt : series->latency[i];
    points.push_back(point ? point_json(*point, known, latency) : Json());
  }
  return ok({{"of", of},
             {"id", key.id.empty() ? Json() : Json(key.id)},
             {"name", series->name},
             {"range", range},
             {"step_seconds", series->step_seconds},
             {"first", rfc3339(WallTime{.seconds = series->first_second})},
             {"points", points}});
}

Response get_top(Backend& backend, Call&) {
  TRY_ASSIGN(const auto files, or_problem(backend.loop.call<std::vector<BusyFile>>(
                                   [&backend] { return backend.administration.busy_files(kTopCount); })));
  Json json{{"clients", Json::array()}, {"files", Json::array()}};
  for (const auto& client : backend.history.busiest_clients(kTopCount, backend.clock.wall_now().seconds))
    json["clients"].push_back(client_json(client));
  for (const BusyFile& file : files) json["files"].push_back(file_json(file));
  return ok(json);
}

Response get_capacity(Backend& backend, Call&) {
  TRY_ASSIGN(const auto numbers, or_problem(backend.numbers.get()));
  uint64_t capacity = 0;
  uint64_t used = 0;
  for (const Brick& brick : numbers->bricks) {
    capacity += brick.blocks * brick.block_bytes;
    used += brick.used_bytes;
  }
  std::vector<UsedAt> past;
  const auto series = backend.history.get({HistoryOf::kServer, {}}, kDay, backend.clock.wall_now().seconds);
  for (size_t i = 0; series && i < series->points.size(); ++i) {
    if (series->points[i])
      past.push_back({series->first_second + static_cast<int64_t>(i) * series->step_seconds,
                      series->points[i]->used_bytes});
  }
  const Forecast found = forecast(past, capacity);
  return ok({{"capacity_bytes", capacity},
             {"used_bytes", used},
             {"known_seconds", found.known_seconds},
             {"outlook", name_of(found.outlook)},
             {"growth_bytes_per_day", found.bytes_per_day ? Json(*found.bytes_per_day) : Json()},
             {"full_in_seconds", found.full_in_seconds ? Json(*found.full_in_seconds) : Json()},
             {"text", found.text}});
}

}  // namespace pnfsrdma::console
