// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import type { Sample } from "../src/api/generated";

vi.mock("uplot/dist/uPlot.min.css", () => ({}));
const { latency } = await import("../src/pages/overview/charts");
const { legendText } = await import("../src/parts/chart");
const { lonePoints } = await import("../src/parts/chart_options");

const sample = (operations: number, p99: number) => ({ operations, latency_us: { p50: 0, p90: 0, p99 } }) as Sample;
const microseconds = (value: number) => `${value} µs`;

test("where nothing was called, latency is a gap and not a zero", () => {
  const values = [sample(3, 40), sample(0, 0)].map(latency((us) => us.p99));
  expect(values).toEqual([40, null]);
  expect(values.map((value) => legendText(value, microseconds))).toEqual(["40 µs", "–"]);
  expect(legendText(undefined, microseconds)).toBe("–");
});
test("a value between two gaps is a point", () => {
  expect(lonePoints([1, null, 2, 3, null, 4])).toEqual([0, 5]);
  expect(lonePoints([])).toEqual([]);
});

// The style sheet's own colours: no line of a chart looks like another, or like a state.
test("a colour of the charts means one thing", () => {
  const css = readFileSync("src/style/base.css", "utf8");
  const names = ["read", "write", "calls", "calls-slow", "calls-slowest", "flush", "layouts", "layouts-recalled",
    "layouts-revoked", "block-data", "block-free", "good", "warn", "bad"];
  const values = names.map((name) => new RegExp(`--${name}: (light-dark\\(.*\\));`).exec(css)?.[1]);
  expect(values).not.toContain(undefined);
  expect(new Set(values).size).toBe(names.length);
});
