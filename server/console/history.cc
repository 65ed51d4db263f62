// SPDX-License-Identifier: Apache-2.0
#include "server/console/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pnfsrdma::console {

namespace {

constexpr int64_t kUsualMs = 1000;  // between two hand-ins
constexpr int64_t kGoneMs = 5000;
constexpr size_t kMinute = 60 / kHistoryRanges[0].step_seconds;

constexpr uint64_t Amounts::* kCounters[] = {&Amounts::operations,       &Amounts::mds_read_bytes,
                                             &Amounts::mds_write_bytes,  &Amounts::rdma_read_bytes,
                                             &Amounts::rdma_write_bytes, &Amounts::rdma_reads,
                                             &Amounts::rdma_writes};

// Whoever was started anew counts from zero.
uint64_t risen(uint64_t now, uint64_t before) {
  return now >= before ? now - before : now;
}

// A client or export that was not there a second ago has done all that it is said to have done since.
bool begins_with_zero(HistoryOf of) {
  return of == HistoryOf::kClient || of == HistoryOf::kExport;
}

int64_t ms_of(const WallTime& time) {
  return time.seconds * 1000 + time.nanoseconds / 1'000'000;
}

size_t places_for(HistoryOf of) {
  switch (of) {
    case HistoryOf::kServer:
      return 1;
    case HistoryOf::kBrick:
      return kBrickHistories;
    case HistoryOf::kClient:
      return kClientHistories;
    case HistoryOf::kExport:
      return kExportHistories;
  }
  return 0;
}

uint64_t moved(const Amounts& amounts) {
  return amounts.mds_read_bytes + amounts.mds_write_bytes + amounts.rdma_read_bytes +
         amounts.rdma_write_bytes;
}

Amounts served(const ServedCounters& counters) {
  return {.operations = counters.operations,
          .mds_read_bytes = counters.read_bytes,
          .mds_write_bytes = counters.write_bytes};
}

LatencyHistogram latency_of(const Numbers& numbers) {
  LatencyHistogram all;
  for (const OperationCounter& operation : numbers.operations) all += operation.latency;
  return all;
}

}  // namespace

Amounts& Amounts::operator+=(const Amounts& later) {
  covered_ms += later.covered_ms;
  for (uint64_t Amounts::* const counter : kCounters) this->*counter += later.*counter;
  used_bytes = later.used_bytes;
  return *this;
}

// A brick that was not asked the last time begins anew.
std::map<uint64_t, Amounts> History::direct_since(State& state, const Activity& activity) {
  std::map<uint64_t, Amounts> found;
  decltype(state.sessions) now;
  for (const BrickActivity& brick : activity.bricks) {
    const auto known = state.sessions.find(brick.brick);
    for (const auto& [client, counters] : brick.clients) {
      now[brick.brick][client] = counters;
      Amounts& amounts = found[client];
      if (known == state.sessions.end()) continue;
      const auto earlier = known->second.find(client);
      const DirectCounters before = earlier == known->second.end() ? DirectCounters{} : earlier->second;
      amounts.rdma_read_bytes += risen(counters.read_bytes, before.read_bytes);
      amounts.rdma_write_bytes += risen(counters.write_bytes, before.write_bytes);
      amounts.rdma_reads += risen(counters.reads, before.reads);
      amounts.rdma_writes += risen(counters.writes, before.writes);
    }
    now.try_emplace(brick.brick);
  }
  state.sessions = std::move(now);
  return found;
}

std::vector<History::Subject> History::subjects_of(State& state, const Numbers& numbers,
                                                   const Activity& activity) {
  std::vector<Subject> found;
  Subject server{
      .key = {HistoryOf::kServer, {}},
      .name = {},
      .totals = {.mds_read_bytes = numbers.mds_read_bytes, .mds_write_bytes = numbers.mds_write_bytes},
      .direct = true};
  for (const OperationCounter& operation : numbers.operations) server.totals.operations += operation.count;
  for (const Brick& brick : numbers.bricks) {
    server.totals.used_bytes += brick.used_bytes;
    if (!brick.counted || !brick.usable()) continue;
    const BrickCounters& counters = brick.counters;
    Subject subject{.key = {HistoryOf::kBrick, brick.id},
                    .name = brick.name,
                    .totals = {.rdma_read_bytes = counters.rdma_read_bytes,
                               .rdma_write_bytes = counters.rdma_write_bytes,
                               .rdma_reads = counters.rdma_reads,
                               .rdma_writes = counters.rdma_writes,
                               .used_bytes = brick.used_bytes},
                    .direct = true};
    // Brick by brick: one that comes, goes or starts anew must not show as a leap.
    if (const auto before = state.before.find(subject.key); before != state.before.end()) {
      for (uint64_t Amounts::* const counter : kCounters)
        server.more.*counter += risen(subject.totals.*counter, before->second.totals.*counter);
    }
    found.push_back(std::move(subject));
  }
  found.push_back(std::move(server));
  const std::map<uint64_t, Amounts> direct = direct_since(state, activity);
  for (const ClientActivity& client : activity.clients) {
    Subject subject{.key = {HistoryOf::kClient, fmt::format("{:016x}", client.id)},
                    .name = client.name,
                    .totals = served(client.served)};
    if (const auto more = direct.find(client.id); more != direct.end()) {
      subject.more = more->second;
      subject.direct = true;
    }
    found.push_back(std::move(subject));
  }
  for (const ExportActivity& item : activity.exports)
    found.push_back({.key = {HistoryOf::kExport, std::to_string(item.id)},
                     .name = item.path,
                     .totals = served(item.served)});
  return found;
}

HistoryKey History::place_of(State& state, const HistoryKey& key, int64_t ms) {
  if (state.records.contains(key)) return key;
  size_t taken = 0;
  auto oldest = state.records.end();
  for (auto item = state.records.begin(); item != state.records.end(); ++item) {
    if (item->first.of != key.of || item->first.id == kOthers) continue;
    ++taken;
    if (oldest == state.records.end() || item->second.newest_ms < oldest->second.newest_ms) oldest = item;
  }
  if (taken < places_for(key.of)) return key;
  if (oldest->second.newest_ms >= ms - kGoneMs) return {key.of, kOthers};
  state.records.erase(oldest);
  return key;
}

History::Record& History::record_of(State& state, const HistoryKey& place) {
  const auto [made, added] = state.records.try_emplace(place);
  if (!added) return made->second;
  for (const HistoryRange& range : kHistoryRanges) {
    made->second.rings.emplace_back(range.step_seconds);
    if (place.of == HistoryOf::kServer) made->second.latency.emplace_back(range.step_seconds);
  }
  return made->second;
}

void History::add_to(Record& record, const Newest& newest, const Amounts& since) {
  record.name = newest.name;
  record.direct = record.direct || newest.direct;
  record.newest_ms = newest.ms;
  for (auto& ring : record.rings) ring.add(newest.ms / 1000, since);
}

void History::add_latency(State& state, const Numbers& numbers) {
  const LatencyHistogram now = latency_of(numbers);
  LatencyHistogram since;
  for (size_t i = 0; i < since.counts.size(); ++i)
    since.counts[i] = risen(now.counts[i], state.latency.counts[i]);
  state.latency = now;
  for (auto& ring : state.records.at({HistoryOf::kServer, {}}).latency) ring.add(numbers.time.seconds, since);
}

void History::add(const Numbers& numbers, const Activity& activity) {
  auto locked = state_.lock();
  State& state = *locked;
  const int64_t ms = ms_of(numbers.time);
  const bool first = state.before.empty();
  std::map<HistoryKey, Before> now;
  std::map<HistoryOf, Amounts> shared;
  for (Subject& subject : subjects_of(state, numbers, activity)) {
    now[subject.key] = {subject.totals, ms};
    const auto before = state.before.find(subject.key);
    const bool known = before != state.before.end();
    if (!known && (first || !begins_with_zero(subject.key.of))) continue;
    const Before from = known ? before->second : Before{.ms = ms - kUsualMs};
    Amounts since = subject.more;
    for (uint64_t Amounts::* const counter : kCounters)
      since.*counter += risen(subject.totals.*counter, from.totals.*counter);
    since.used_bytes = subject.totals.used_bytes;
    // The wall clock may have been set.
    since.covered_ms = static_cast<uint64_t>(ms > from.ms ? ms - from.ms : kUsualMs);
    const HistoryKey place = place_of(state, subject.key, ms);
    if (place != subject.key) {
      Amounts& sum = shared[place.of];
      const uint64_t covered = std::max(sum.covered_ms, since.covered_ms);
      sum += since;
      sum.covered_ms = covered;
      continue;
    }
    add_to(record_of(state, place), {.name = subject.name, .direct = subject.direct, .ms = ms}, since);
  }
  for (const auto& [of, amounts] : shared)
    add_to(record_of(state, {of, kOthers}), {.name = kOthers, .direct = of != HistoryOf::kExport, .ms = ms},
           amounts);
  if (first)
    state.latency = latency_of(numbers);
  else
    add_latency(state, numbers);
  state.before = std::move(now);
}

std::optional<History::Series> History::get(const HistoryKey& key, size_t range, int64_t now) {
  auto state = state_.lock();
  const auto found = state->records.find(key);
  if (found == state->records.end()) return std::nullopt;
  const Record& record = found->second;
  const HistoryRing<Amounts>& ring = record.rings.at(range);
  Series series{.name = record.name,
                .direct = record.direct,
                .step_seconds = ring.step_seconds(),
                .first_second = ring.first_second(now),
                .points = ring.until(now),
                .latency = {}};
  if (!record.latency.empty()) series.latency = record.latency.at(range).until(now);
  return series;
}

std::vector<History::BusyClient> History::busiest_clients(size_t count, int64_t now) {
  std::vector<BusyClient> found;
  {
    auto state = state_.lock();
    for (const auto& [key, record] : state->records) {
      if (key.of != HistoryOf::kClient) continue;
      BusyClient client{.id = key.id, .name = record.name, .direct = record.direct, .amounts = {}};
      const auto points = record.rings.front().until(now);
      for (size_t i = points.size() - kMinute; i < points.size(); ++i) {
        if (points[i]) client.amounts += *points[i];
      }
      if (client.amounts.operations > 0 || moved(client.amounts) > 0) found.push_back(std::move(client));
    }
  }
  std::ranges::sort(found, [](const BusyClient& one, const BusyClient& other) {
    return std::pair(moved(one.amounts), one.amounts.operations) >
           std::pair(moved(other.amounts), other.amounts.operations);
  });
  if (found.size() > count) found.resize(count);
  return found;
}

}  // namespace pnfsrdma::console
