// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { Sample } from "../src/api/generated";
import { joined, rate, SAMPLES_MAX } from "../src/api/samples";

const sample = (sequence: number, interval_ms = 1000) => ({ sequence, interval_ms }) as Sample;
const numbers = (samples: Sample[]) => samples.map(({ sequence }) => sequence);

test("new samples follow, known ones do not come twice", () => {
  expect(numbers(joined([sample(1), sample(2)], [sample(2), sample(3)]))).toEqual([1, 2, 3]);
});
test("nothing new leaves the very same list, so that nothing is drawn anew", () => {
  const old = [sample(1)];
  expect(joined(old, [])).toBe(old);
});
test("only the newest ten minutes are kept", () => {
  const all = joined([], Array.from({ length: SAMPLES_MAX + 5 }, (_, index) => sample(index)));
  expect([all.length, all[0]?.sequence]).toEqual([SAMPLES_MAX, 5]);
});
test("a rate is per second whatever the interval was", () => {
  expect(rate(sample(1, 2000), 10)).toBe(5);
  expect(rate(sample(1, 0), 10)).toBe(0);
});
