// SPDX-License-Identifier: Apache-2.0
import type { Sample } from "./generated";
import { call } from "./call";

export const SAMPLES_MAX = 600;

// The last ten minutes of one-second samples, kept by asking only for what is new. A server that was started anew
// counts from the beginning: then everything is asked for again.
export class SampleSeries {
  private samples: Sample[] = [];

  async update(signal: AbortSignal): Promise<Sample[]> {
    const newest = this.samples.at(-1);
    const answer = newest === undefined
      ? await call("GET /throughput", { query: { seconds: SAMPLES_MAX }, signal })
      : await call("GET /throughput", { query: { after: newest.sequence, seconds: SAMPLES_MAX }, signal });
    this.samples = joined(this.samples, answer.samples);
    if (newest !== undefined && answer.samples.length === 0 && secondsSince(newest) > 5) {
      this.samples = (await call("GET /throughput", { query: { seconds: SAMPLES_MAX }, signal })).samples;
    }
    return this.samples;
  }
}

export function joined(old: Sample[], fresh: Sample[]): Sample[] {
  const newest = old.at(-1)?.sequence ?? -1;
  const added = fresh.filter((sample) => sample.sequence > newest);
  return added.length ? [...old, ...added].slice(-SAMPLES_MAX) : old;
}

function secondsSince(sample: Sample): number {
  return (Date.now() - Date.parse(sample.time)) / 1000;
}

// Per second, whatever the interval of the sample really was.
export function rate(sample: Sample, amount: number): number {
  return sample.interval_ms > 0 ? (amount * 1000) / sample.interval_ms : 0;
}
