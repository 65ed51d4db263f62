// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

#include "shared/base/latency_histogram.h"

namespace pnfsrdma::initiator {

// One counter: added to by any thread, relaxed; read at any time.
class Counter {
 public:
  void add(uint64_t amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_ = 0;
};

// What the data path did since the mount began. Names are stable: the mount's statistics file and the demo
// show them.
struct Statistics {
  Counter rdma_read_bytes, rdma_reads;  // confirmed by the transport
  Counter rdma_write_bytes, rdma_writes;
  Counter rdma_round_trips;  // waits for bricks, of I/O and flush; for several bricks at once it is one
  Counter hole_bytes;        // read as zeros, nothing touched
  Counter mds_read_bytes, mds_reads;  // READ through the MDS
  Counter mds_write_bytes, mds_writes;
  Counter flushes_native, flushes_commit_message, flushes_layoutcommit, flushes_mds_commit;
  Counter fsyncs, fdatasyncs;  // asked for by applications
  Counter layoutgets, layoutgets_refused, layoutgets_prefetched;
  Counter layoutcommits, layoutcommits_beside;  // waited for; sent beside a flush or by the timer
  Counter layoutreturns, recalls, recalls_without_match, recalls_delayed;
  Counter fallbacks;  // I/Os that had to go through the MDS although a layout was wanted
  Counter connects, reconnects, tickets_refused, layouts_dropped;
  Counter replays;                       // I/Os posted again after their connection died
  Counter lost_writes;                   // verifier changes and revocations that cost unflushed writes
  Counter restorations, restored_bytes;  // growth that was written again after its layout was lost
  Counter resent_writes, resent_bytes;   // through the MDS, again: it had lost what was not committed
  Counter held_writes;                   // answered before they were sent, under a delegation
  Counter connect_failures;
  // Of whole I/Os, whichever way they went, and of fsync and fdatasync.
  LatencyHistogram read_latency, write_latency, sync_latency;

  // A copy in a fixed order.
  using Entry = std::pair<std::string_view, uint64_t>;
  static constexpr size_t kCount = 38;
  std::array<Entry, kCount> snapshot() const;
};

}  // namespace pnfsrdma::initiator
