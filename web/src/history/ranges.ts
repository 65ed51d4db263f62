// SPDX-License-Identifier: Apache-2.0
import type { History, HistoryPoint } from "../api/generated";

export type Range = History["range"];
// Whose history.
export interface Subject {
  of: History["of"];
  id?: string;
}

export const RANGES = [
  { value: "15m", label: "15 min", spoken: "15 minutes" },
  { value: "1h", label: "1 hour", spoken: "hour" },
  { value: "6h", label: "6 hours", spoken: "6 hours" },
  { value: "24h", label: "24 hours", spoken: "24 hours" },
] as const;

export function rangeOf(asked: string | null): Range {
  return RANGES.find(({ value }) => value === asked)?.value ?? "1h";
}

// How often a range is asked for: each step once or twice, no more than every 30 s.
export function pollMilliseconds(range: Range): number {
  return { "15m": 3000, "1h": 10_000, "6h": 30_000, "24h": 30_000 }[range];
}

// When each step began, seconds since the epoch.
export function timesOf(history: History): number[] {
  const first = Date.parse(history.first) / 1000;
  return history.points.map((_, index) => first + index * history.step_seconds);
}

type Counter = Exclude<keyof NonNullable<HistoryPoint>, "latency_us" | "covered_ms">;

// Per second of the time it was counted over; null where nothing is known.
export function ratesOf(history: History, counter: Counter): (number | null)[] {
  return history.points.map((point) => {
    const amount = point?.[counter] ?? null;
    return point === null || amount === null || point.covered_ms === 0 ? null : (amount * 1000) / point.covered_ms;
  });
}

export function latenciesOf(history: History, share: "p50" | "p90" | "p99"): (number | null)[] {
  return history.points.map((point) => point?.latency_us?.[share] ?? null);
}
