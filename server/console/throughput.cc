// SPDX-License-Identifier: Apache-2.0
#include "server/console/throughput.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "server/console/time_text.h"

namespace pnfsrdma::console {

namespace {

// A brick that was started anew counts from zero.
uint64_t grown(uint64_t now, uint64_t before) {
  return now >= before ? now - before : now;
}

struct Operations {
  uint64_t count = 0;
  uint64_t errors = 0;
  LatencyHistogram latency;
};

Operations sum(const Numbers& numbers) {
  Operations all;
  for (const OperationCounter& operation : numbers.operations) {
    all.count += operation.count;
    all.errors += operation.errors;
    for (size_t i = 0; i < all.latency.counts.size(); ++i)
      all.latency.counts[i] += operation.latency.counts[i];
  }
  return all;
}

// Brick by brick: one that comes, goes, starts anew or tells its counters for the first time must not show as a leap.
BrickCounters grown_bricks(const Numbers& now, const Numbers& before) {
  std::map<std::string, BrickCounters> known;
  for (const Brick& brick : before.bricks) {
    if (brick.counted) known[brick.id] = brick.counters;
  }
  BrickCounters all;
  for (const Brick& brick : now.bricks) {
    if (!brick.counted) continue;
    const auto found = known.find(brick.id);
    if (found == known.end()) continue;
    for (uint64_t BrickCounters::* member :
         {&BrickCounters::rdma_read_bytes, &BrickCounters::rdma_write_bytes, &BrickCounters::rdma_reads,
          &BrickCounters::rdma_writes, &BrickCounters::rdma_flushes, &BrickCounters::commit_messages,
          &BrickCounters::mds_flushes})
      all.*member += grown(brick.counters.*member, found->second.*member);
  }
  return all;
}

Sample sample_of(const Numbers& now, const Numbers& before) {
  const Operations all = sum(now);
  const Operations earlier = sum(before);
  LatencyHistogram latency;
  for (size_t i = 0; i < latency.counts.size(); ++i)
    latency.counts[i] = all.latency.counts[i] - earlier.latency.counts[i];
  const int64_t ms = (now.time.seconds - before.time.seconds) * 1000 +
                     (int64_t{now.time.nanoseconds} - int64_t{before.time.nanoseconds}) / 1'000'000;
  return {.time = now.time,
          .interval_ms = static_cast<uint64_t>(std::max<int64_t>(ms, 1)),
          .operations = all.count - earlier.count,
          .errors = all.errors - earlier.errors,
          .mds_read_bytes = now.mds_read_bytes - before.mds_read_bytes,
          .mds_write_bytes = now.mds_write_bytes - before.mds_write_bytes,
          .bricks = grown_bricks(now, before),
          .p50_us = percentile(latency, 0.50),
          .p90_us = percentile(latency, 0.90),
          .p99_us = percentile(latency, 0.99),
          .clients = now.clients,
          .layouts = now.layouts,
          .grants = now.grants,
          .layouts_granted = now.layouts_granted - before.layouts_granted,
          .layouts_recalled = now.layouts_recalled - before.layouts_recalled,
          .layouts_revoked = now.layouts_revoked - before.layouts_revoked};
}

}  // namespace

double percentile(const LatencyHistogram& histogram, double share) {
  const uint64_t all = std::accumulate(histogram.counts.begin(), histogram.counts.end(), uint64_t{0});
  if (all == 0) return 0;
  const double wanted = share * static_cast<double>(all);
  double below = 0;
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    const double here = static_cast<double>(histogram.counts[i]);
    if (here > 0 && below + here >= wanted) {
      const double lower = i == 0 ? 0 : LatencyHistogram::kBoundsUs[i - 1];
      if (i == LatencyHistogram::kBoundsUs.size()) return lower;
      return lower + (LatencyHistogram::kBoundsUs[i] - lower) * (wanted - below) / here;
    }
    below += here;
  }
  return LatencyHistogram::kBoundsUs.back();
}

void Throughput::add(const Numbers& numbers) {
  auto state = state_.lock();
  if (state->last) {
    Sample sample = sample_of(numbers, *state->last);
    sample.sequence = state->next++;
    state->samples.push_back(sample);
    if (state->samples.size() > kKept) state->samples.pop_front();
  }
  state->last = numbers;
}

std::vector<Sample> Throughput::newest(uint64_t after, size_t count) {
  auto state = state_.lock();
  const size_t skipped = state->samples.size() > count ? state->samples.size() - count : 0;
  std::vector<Sample> found;
  for (size_t i = skipped; i < state->samples.size(); ++i) {
    if (state->samples[i].sequence > after) found.push_back(state->samples[i]);
  }
  return found;
}

Json to_json(const Sample& sample) {
  return {{"time", rfc3339(sample.time)},
          {"sequence", sample.sequence},
          {"interval_ms", sample.interval_ms},
          {"operations", sample.operations},
          {"errors", sample.errors},
          {"mds_read_bytes", sample.mds_read_bytes},
          {"mds_write_bytes", sample.mds_write_bytes},
          {"rdma_read_bytes", sample.bricks.rdma_read_bytes},
          {"rdma_write_bytes", sample.bricks.rdma_write_bytes},
          {"rdma_reads", sample.bricks.rdma_reads},
          {"rdma_writes", sample.bricks.rdma_writes},
          {"flushes", sample.bricks.rdma_flushes + sample.bricks.commit_messages + sample.bricks.mds_flushes},
          {"latency_us", {{"p50", sample.p50_us}, {"p90", sample.p90_us}, {"p99", sample.p99_us}}},
          {"clients", sample.clients},
          {"layouts", sample.layouts},
          {"grants", sample.grants},
          {"layouts_granted", sample.layouts_granted},
          {"layouts_recalled", sample.layouts_recalled},
          {"layouts_revoked", sample.layouts_revoked}};
}

}  // namespace pnfsrdma::console
