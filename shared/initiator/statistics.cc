// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/statistics.h"

namespace pnfsrdma::initiator {

std::array<Statistics::Entry, Statistics::kCount> Statistics::snapshot() const {
  return {{
      {"rdma_read_bytes", rdma_read_bytes.value()},
      {"rdma_reads", rdma_reads.value()},
      {"rdma_write_bytes", rdma_write_bytes.value()},
      {"rdma_writes", rdma_writes.value()},
      {"rdma_round_trips", rdma_round_trips.value()},
      {"hole_bytes", hole_bytes.value()},
      {"mds_read_bytes", mds_read_bytes.value()},
      {"mds_reads", mds_reads.value()},
      {"mds_write_bytes", mds_write_bytes.value()},
      {"mds_writes", mds_writes.value()},
      {"flushes_native", flushes_native.value()},
      {"flushes_commit_message", flushes_commit_message.value()},
      {"flushes_layoutcommit", flushes_layoutcommit.value()},
      {"flushes_mds_commit", flushes_mds_commit.value()},
      {"fsyncs", fsyncs.value()},
      {"fdatasyncs", fdatasyncs.value()},
      {"layoutgets", layoutgets.value()},
      {"layoutgets_refused", layoutgets_refused.value()},
      {"layoutgets_prefetched", layoutgets_prefetched.value()},
      {"layoutcommits", layoutcommits.value()},
      {"layoutcommits_beside", layoutcommits_beside.value()},
      {"layoutreturns", layoutreturns.value()},
      {"recalls", recalls.value()},
      {"recalls_without_match", recalls_without_match.value()},
      {"recalls_delayed", recalls_delayed.value()},
      {"fallbacks", fallbacks.value()},
      {"connects", connects.value()},
      {"reconnects", reconnects.value()},
      {"connect_failures", connect_failures.value()},
      {"tickets_refused", tickets_refused.value()},
      {"layouts_dropped", layouts_dropped.value()},
      {"replays", replays.value()},
      {"lost_writes", lost_writes.value()},
      {"restorations", restorations.value()},
      {"restored_bytes", restored_bytes.value()},
      {"held_writes", held_writes.value()},
      {"resent_writes", resent_writes.value()},
      {"resent_bytes", resent_bytes.value()},
  }};
}

}  // namespace pnfsrdma::initiator
