// SPDX-License-Identifier: Apache-2.0
import type uPlot from "uplot";
import { useEffect, useRef, useState } from "preact/hooks";
import { useColours } from "../theme";
import { chartOptions } from "./chart_options";
import { useWidth } from "./use_width";

// One meaning each, in every chart: what is read and written, calls to the server (how slow: three shades), flushes,
// layouts (how forcefully they change hands: three shades), data at rest.
export type LineTone = "read" | "write" | "calls" | "calls-slow" | "calls-slowest" | "flush" |
  "layouts" | "layouts-recalled" | "layouts-revoked" | "block-data";

export interface Line {
  label: string;
  tone: LineTone;
  dashed?: boolean;
  // null: there was nothing to measure, which is a gap and not a zero.
  values: (number | null)[];
}

interface Props {
  title: string;
  // Seconds since the epoch, rising; each line has as many values.
  times: number[];
  // The width of the time axis; young series leave its left side empty.
  seconds: number;
  lines: Line[];
  format: (value: number) => string;
  // The axis steps in powers of two.
  binary?: boolean;
}

// A live chart and its legend, which shows the values under the pointer, else the newest. The legend is text: what
// the picture says is readable without it.
export function Chart({ title, times, seconds, lines, format, binary = false }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const [pointed, setPointed] = useState<number | null>(null);
  const colours = useColours();
  const width = useWidth(frame);
  const newest = times.at(-1) ?? Date.now() / 1000;
  const scale = useRef({ min: 0, max: 0 });
  scale.current = { min: newest - seconds, max: newest };
  const data = [times, ...lines.map((line) => line.values)] as uPlot.AlignedData;
  const latest = useRef(data);
  latest.current = data;
  const shape = lines.map((line) => `${line.label}${line.tone}${line.dashed}`).join();

  useEffect(() => {
    let gone = false;
    if (width > 0) {
      void import("uplot").then(({ default: Plot }) => {
        if (gone || !frame.current) return;
        const options = chartOptions({ width, lines, format, binary, range: () => [scale.current.min, scale.current.max], onPoint: setPointed });
        plot.current = new Plot(options, latest.current, frame.current);
      });
    }
    return () => {
      gone = true;
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [width, colours, shape]);

  useEffect(() => {
    plot.current?.setData(data);
  }, [times, lines]);

  const index = pointed !== null && pointed < times.length ? pointed : times.length - 1;
  return (
    <figure class="panel chart">
      <figcaption>
        <h2>{title}</h2>
        <ul class="legend">
          {lines.map((line) => (
            <li key={line.label}>
              <span class={`swatch swatch-${line.tone} ${line.dashed ? "swatch-dashed" : ""}`} aria-hidden="true" />
              {line.label} <span class="legend-value">{legendText(line.values[index], format)}</span>
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="plot" ref={frame} aria-hidden="true" />
    </figure>
  );
}

export function legendText(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? "–" : format(value);
}
