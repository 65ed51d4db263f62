// SPDX-License-Identifier: Apache-2.0
import type { Sample } from "../../api/generated";
import { rate } from "../../api/samples";
import { bytesPerSecond, countText, microseconds, perSecond, plural } from "../../format/number";
import { Stat } from "../../parts/stat";

// The last second in numbers.
export function Numbers({ newest }: { newest: Sample | undefined }) {
  if (!newest) return null;
  const speed = (amount: number) => bytesPerSecond(rate(newest, amount));
  return (
    <dl class="stats">
      <Stat label="Read, direct" tone="read" value={speed(newest.rdma_read_bytes)} />
      <Stat label="Written, direct" tone="write" value={speed(newest.rdma_write_bytes)} />
      <Stat label="Through the server" value={speed(newest.mds_read_bytes + newest.mds_write_bytes)} />
      <Stat label="RDMA operations" value={perSecond(rate(newest, newest.rdma_reads + newest.rdma_writes))} />
      <Stat label="NFS operations" value={perSecond(rate(newest, newest.operations))}
        note={newest.errors > 0 ? `${countText(newest.errors)} refused` : undefined} />
      <Stat label="NFS latency p99" value={microseconds(newest.latency_us.p99)} />
      <Stat label="Clients" value={{ digits: countText(newest.clients), unit: "" }} />
      <Stat label="Live handles" value={{ digits: countText(newest.grants), unit: "" }}
        note={`in ${plural(newest.layouts, "layout")}`} />
    </dl>
  );
}
