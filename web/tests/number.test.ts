// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { bytesText, countText, microseconds, percent, plural, quantityText } from "../src/format/number";

describe("sizes", () => {
  test.each([
    [0, "0 B"], [1, "1 B"], [1023, "1023 B"], [1024, "1.00 KiB"], [1536, "1.50 KiB"], [10 * 1024, "10.0 KiB"],
    [1024 * 1024 - 1, "1.00 MiB"], [2 * 1024 * 1024, "2.00 MiB"], [2 ** 60, "1.00 EiB"], [2 ** 63, "8.00 EiB"],
  ])("%d is %s", (value, text) => expect(bytesText(value)).toBe(text));

  test("never show four digits of a unit that has a bigger one", () => {
    for (let value = 1; value < 2 ** 60; value = Math.ceil(value * 1.0137)) {
      const digits = bytesText(value).split(" ")[0] ?? "";
      expect(Number(digits)).toBeLessThan(1024);
    }
  });
});

describe("counts and rates", () => {
  test.each([[0, "0"], [999, "999"], [1000, "1.00 k"], [999_999, "1.00 M"], [12_345_678, "12.3 M"]])(
    "%d is %s", (value, text) => expect(countText(value)).toBe(text));
});

describe("latencies", () => {
  test.each([[0, "0 µs"], [3.25, "3.3 µs"], [250, "250 µs"], [1500, "1.50 ms"], [2_500_000, "2.50 s"]])(
    "%d is %s", (value, text) => expect(quantityText(microseconds(value))).toBe(text));
});

test("a part of nothing is nothing", () => {
  expect(percent(0, 0)).toBe("0 %");
  expect(percent(1, 100000)).toBe("< 0.1 %");
  expect(percent(1, 3)).toBe("33 %");
});

test("one is singular", () => {
  expect([plural(1, "file"), plural(0, "file"), plural(1200, "file")]).toEqual(["1 file", "0 files", "1,200 files"]);
});
