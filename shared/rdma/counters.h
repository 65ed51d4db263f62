// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "shared/rdma/transport.h"

namespace pnfsrdma::rdma {

// TransportCounters as they are being counted. Relaxed: each number is right, two of them may be of different
// moments.
struct AtomicCounters {
  using Counter = std::atomic<uint64_t>;
  Counter write_bytes = 0, write_operations = 0;
  Counter read_bytes = 0, read_operations = 0;
  Counter send_operations = 0, receive_operations = 0, flush_operations = 0;
  Counter atomic_write_operations = 0;
  Counter responder_write_bytes = 0, responder_write_operations = 0;
  Counter responder_read_bytes = 0, responder_read_operations = 0;
  Counter responder_flush_operations = 0;

  static void add(Counter& counter, uint64_t amount) { counter.fetch_add(amount, std::memory_order_relaxed); }
  TransportCounters read() const {
    constexpr auto kRelaxed = std::memory_order_relaxed;
    return {.write_bytes = write_bytes.load(kRelaxed),
            .write_operations = write_operations.load(kRelaxed),
            .read_bytes = read_bytes.load(kRelaxed),
            .read_operations = read_operations.load(kRelaxed),
            .send_operations = send_operations.load(kRelaxed),
            .receive_operations = receive_operations.load(kRelaxed),
            .flush_operations = flush_operations.load(kRelaxed),
            .atomic_write_operations = atomic_write_operations.load(kRelaxed),
            .responder_write_bytes = responder_write_bytes.load(kRelaxed),
            .responder_write_operations = responder_write_operations.load(kRelaxed),
            .responder_read_bytes = responder_read_bytes.load(kRelaxed),
            .responder_read_operations = responder_read_operations.load(kRelaxed),
            .responder_flush_operations = responder_flush_operations.load(kRelaxed)};
  }
};

}  // namespace pnfsrdma::rdma
