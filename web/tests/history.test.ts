// SPDX-License-Identifier: Apache-2.0
import { expect, test, vi } from "vitest";
import type { History, HistoryPoint } from "../src/api/generated";

vi.mock("uplot/dist/uPlot.min.css", () => ({}));
const { chartsOf } = await import("../src/history/history_charts");
const { latenciesOf, rangeOf, ratesOf, timesOf } = await import("../src/history/ranges");

const point = (more: Partial<NonNullable<HistoryPoint>>): HistoryPoint => ({
  covered_ms: 20_000, operations: 0, mds_read_bytes: 0, mds_write_bytes: 0, rdma_read_bytes: null, rdma_write_bytes: null,
  rdma_reads: null, rdma_writes: null, used_bytes: null, latency_us: null, ...more,
});
const history = (points: HistoryPoint[]): History => ({
  of: "export", id: "1", name: "/", range: "1h", step_seconds: 20, first: "2026-03-01T09:30:00Z", points,
});

test("a rate is over the time that was counted, and a gap where nothing is known", () => {
  const of = history([null, point({ operations: 40 }), point({ operations: 10, covered_ms: 2000 })]);
  expect(ratesOf(of, "operations")).toEqual([null, 2, 5]);
  expect(ratesOf(of, "rdma_reads")).toEqual([null, null, null]);
  expect(timesOf(of).map((time) => time - Date.parse(of.first) / 1000)).toEqual([0, 20, 40]);
});
test("latency is a gap where nothing was called", () => {
  const of = history([point({}), point({ latency_us: { p50: 1, p90: 2, p99: 3 } })]);
  expect(latenciesOf(of, "p99")).toEqual([null, 3]);
});
test("what is not measured has no line, and no chart of its own", () => {
  const charts = chartsOf(history([point({ operations: 1 })]));
  expect(charts.map(({ title, lines }) => [title, lines.map(({ label }) => label)])).toEqual([
    ["Throughput", ["Read, server", "Written, server"]], ["Operations", ["NFS"]],
  ]);
  expect(chartsOf(history([null, null]))).toEqual([]);
});
test("an address that names no range shows the last hour", () => {
  expect([rangeOf("6h"), rangeOf("2h"), rangeOf(null)]).toEqual(["6h", "1h", "1h"]);
});
