// SPDX-License-Identifier: Apache-2.0
import type { History } from "../api/generated";
import { bytesPerSecond, bytesText, microseconds, perSecond, quantityText } from "../format/number";
import { Chart, type Line } from "../parts/chart";
import { Empty } from "../parts/empty";
import { latenciesOf, ratesOf, RANGES, timesOf } from "./ranges";

// What is not measured for this kind has no line, and a chart without lines is left out.
function known(lines: Line[]): Line[] {
  return lines.filter((line) => line.values.some((value) => value !== null));
}

export function chartsOf(history: History) {
  const rate = (label: string, tone: Line["tone"], counter: Parameters<typeof ratesOf>[1], dashed = false): Line =>
    ({ label, tone, dashed, values: ratesOf(history, counter) });
  const latency = (share: "p50" | "p90" | "p99", tone: Line["tone"]): Line =>
    ({ label: share, tone, values: latenciesOf(history, share) });
  return [
    { title: "Throughput", format: (value: number) => quantityText(bytesPerSecond(value)), binary: true, lines: known([
      rate("Read, iWARP", "read", "rdma_read_bytes"),
      rate("Written, iWARP", "write", "rdma_write_bytes"),
      rate("Read, server", "read", "mds_read_bytes", true),
      rate("Written, server", "write", "mds_write_bytes", true),
    ]) },
    { title: "Operations", format: (value: number) => quantityText(perSecond(value)), binary: false, lines: known([
      rate("Reads, iWARP", "read", "rdma_reads"),
      rate("Writes, iWARP", "write", "rdma_writes"),
      rate("NFS", "calls", "operations", true),
    ]) },
    { title: "Latency of NFS operations", format: (value: number) => quantityText(microseconds(value)), binary: false, lines: known([
      latency("p50", "calls"), latency("p90", "calls-slow"), latency("p99", "calls-slowest"),
    ]) },
    { title: "Used by files", format: bytesText, binary: true, lines: known([
      { label: "Used", tone: "block-data", values: history.points.map((point) => point?.used_bytes ?? null) },
    ]) },
  ].filter(({ lines }) => lines.length > 0);
}

// The charts of one history; gaps are times of which nothing is known.
export function HistoryCharts({ history }: { history: History }) {
  const charts = chartsOf(history);
  const spoken = RANGES.find(({ value }) => value === history.range)?.spoken ?? history.range;
  if (charts.length === 0) return <Empty title={`No data for the last ${spoken} yet.`} />;
  const times = timesOf(history);
  return (
    <div class="charts">
      {charts.map(({ title, format, binary, lines }) => (
        <Chart key={title} title={title} times={times} lines={lines} format={format} binary={binary}
          seconds={(history.points.length - 1) * history.step_seconds} />
      ))}
    </div>
  );
}
