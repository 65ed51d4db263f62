// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace pnfsrdma::bench {

struct Settings {
  double seconds = 0.5;  // per number
  int depth = 16;        // operations in flight for bandwidth
  int socket_buffer_bytes = 4 << 20;
  int initiator_cpu = -1;  // -1: not pinned
  int target_cpu = -1;
  bool verbs = false;  // the first RDMA device instead of iwarp
};

// The nth CPU this process may run on, or the last when it has fewer.
int allowed_cpu(int index);
// Pins the calling thread; -1 leaves it alone.
void pin_to(int cpu);

double seconds_now();

// Plain TCP on loopback, with the same socket options as the transport's.
class TcpBaseline {
 public:
  // GB/s of a one-way stream: send(2) and recv(2) of `size` bytes from and to rotating places in memory of
  // region_bytes.
  static double stream(const Settings& settings, size_t size);
  // Microseconds of one round trip, the median: one byte goes, `size` come back, as a READ moves them.
  static double ping_pong(const Settings& settings, size_t size);
};

class TransportBench {
 public:
  enum class Operation { kRead, kWrite };
  // How a completion is waited for: by wait(), which spins and then sleeps, or by poll() alone, as perftest
  // does.
  enum class Waiting { kAdaptive, kPolling };
  static double bandwidth(const Settings& settings, bool crc, Operation operation, size_t size);
  // Microseconds of one operation at queue depth 1, the median; a WRITE is counted when it is confirmed.
  static double latency(const Settings& settings, bool crc, Operation operation, size_t size,
                        Waiting waiting = Waiting::kAdaptive);
  // Microseconds, the median, from the post of a WRITE until the other side sees its last byte: half a round
  // of ping-pong, as perftest's ib_write_lat has it. Verbs only.
  static double ping_pong(const Settings& settings, size_t size);
};

}  // namespace pnfsrdma::bench
