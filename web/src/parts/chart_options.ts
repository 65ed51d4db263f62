// SPDX-License-Identifier: Apache-2.0
import type uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { clockText } from "../format/time";
import { colour } from "../theme";
import type { Line } from "./chart";

const HEIGHT = 168;
const TIME_AXIS_HEIGHT = 24;
// Sizes are read in powers of two.
const BINARY_STEPS = Array.from({ length: 60 }, (_, power) => 2 ** power);
const AXIS_FONT = "11px system-ui, sans-serif";

interface Wishes {
  width: number;
  lines: Line[];
  format: (value: number) => string;
  binary: boolean;
  // Of the time axis, seconds since the epoch.
  range: () => [number, number];
  // Index of the sample under the pointer; null: none.
  onPoint: (index: number | null) => void;
}

// How every chart looks: colours of the style sheet, a quiet grid, no legend of uPlot's own.
export function chartOptions({ width, lines, format, binary, range, onPoint }: Wishes): uPlot.Options {
  const grid = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: colour("--muted"), font: AXIS_FONT, grid, ticks: { show: false } };
  return {
    width, height: HEIGHT, legend: { show: false }, padding: [8, 26, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { time: true, range }, y: { range: (_, __, max) => [0, niceTop(max)] } },
    axes: [
      { ...axis, size: TIME_AXIS_HEIGHT, space: 80, values: (_, ticks) => ticks.map((tick) => clockText(tick * 1000)) },
      { ...axis, size: 76, space: 32, ...(binary ? { incrs: BINARY_STEPS } : {}), values: (_, ticks) => ticks.map((tick) => (tick === 0 ? "0" : format(tick))) },
    ],
    series: [{}, ...lines.map((line) => series(line))],
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
  };
}

function series(line: Line): uPlot.Series {
  const stroke = colour(`--${line.tone}`);
  return {
    label: line.label, stroke, width: 1.5,
    points: { show: true, size: 4, fill: stroke, filter: (plot, index) => lonePoints(plot.data[index] ?? []) },
    ...(line.dashed ? { dash: [4, 3] } : { fill: stroke.replace(/^rgb\((.*)\)$/, "rgba($1, 0.12)") }),
  };
}

// A value between two gaps has no line to lie on: it is drawn as a point. Indexes of those.
export function lonePoints(values: ArrayLike<number | null | undefined>): number[] {
  const missing = (index: number) => values[index] === null || values[index] === undefined;
  return Array.from(values, (_, index) => index).filter((index) => !missing(index) && missing(index - 1) && missing(index + 1));
}

// A little air above the highest value, and never an axis of no height.
export function niceTop(max: number | null): number {
  return max === null || !(max > 0) ? 1 : max * 1.1;
}
