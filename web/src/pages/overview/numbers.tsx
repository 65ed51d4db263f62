// SPDX-License-Identifier: Apache-2.0
import type { Sample } from "../../api/generated";
import { rate } from "../../api/samples";
import { bytesPerSecond, countText, microseconds, perSecond, plural, quantityText } from "../../format/number";
import { Stat } from "../../parts/stat";

// The last second in numbers.
export function Numbers({ newest }: { newest: Sample | undefined }) {
  if (!newest) return null;
  const speed = (amount: number) => bytesPerSecond(rate(newest, amount));
  return (
    <dl class="stats">
      <Stat label="Read, direct" tone="read" value={speed(newest.rdma_read_bytes)} />
      <Stat label="Written, direct" tone="write" value={speed(newest.rdma_write_bytes)} />
      <Stat label="Via server" value={speed(newest.mds_read_bytes + newest.mds_write_bytes)} />
      <Stat label="RDMA operations" value={perSecond(rate(newest, newest.rdma_reads + newest.rdma_writes))} />
      <Stat label="NFS operations" value={perSecond(rate(newest, newest.operations))}
        note={newest.errors > 0 ? `${countText(newest.errors)} refused` : undefined} />
      <Latency sample={newest} />
      <Stat label="Clients" value={{ digits: countText(newest.clients), unit: "" }} />
      <Stat label="Live handles" value={{ digits: countText(newest.grants), unit: "" }}
        note={`in ${plural(newest.layouts, "layout")}`} />
    </dl>
  );
}

// Of a second without a call there is nothing to say.
function Latency({ sample: { operations, latency_us } }: { sample: Sample }) {
  const label = "NFS latency p99";
  if (operations === 0) return <Stat label={label} value={{ digits: "–", unit: "" }} note="no calls now" />;
  const text = (us: number) => quantityText(microseconds(us));
  return (
    <Stat label={label} value={microseconds(latency_us.p99)}
      note={<><span class="nowrap">p50 {text(latency_us.p50)}</span> <span class="nowrap">p90 {text(latency_us.p90)}</span></>} />
  );
}
