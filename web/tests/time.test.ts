// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { absoluteText, agoText, durationText, inText } from "../src/format/time";

test.each([[0, "0 s"], [59.9, "59 s"], [61, "1 min 1 s"], [3600, "1 h 0 min"], [90000, "1 d 1 h"], [-3, "0 s"]])(
  "a duration of %d s is %s", (seconds, text) => expect(durationText(seconds)).toBe(text));

test.each([[-900, "now"], [1500, "now"], [2000, "2 s ago"], [3_600_000, "1 h ago"], [172_800_000, "2 d ago"]])(
  "%d ms back is %s", (milliseconds, text) => expect(agoText(milliseconds)).toBe(text));

test("what is to come is named", () => expect(inText(7_200_000)).toBe("in 2 h"));

test("the absolute time is UTC to the second; what is no time is shown as it is", () => {
  expect(absoluteText("2026-11-21T21:16:05.123Z")).toBe("2026-11-21 21:16:05 UTC");
  expect(absoluteText("2026-11-21T23:16:05+02:00")).toBe("2026-11-21 21:16:05 UTC");
  expect(absoluteText("soon")).toBe("soon");
});
