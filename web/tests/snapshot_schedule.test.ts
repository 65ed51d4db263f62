// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import type { SnapshotSchedule } from "../src/api/generated";
import { formOf, isGood, keptText, numberFault, scheduleOf, sumFault, timeFault } from "../src/pages/snapshots/schedule_words";

const schedule: SnapshotSchedule = { hourly: 24, daily: 7, weekly: 0, monthly: 12, hour: 2, minute: 5, next: [], failure: null, tries_in_vain: 0 };

describe("the schedule of snapshots", () => {
  test("comes out of the form as it went in", () => {
    const form = formOf(schedule);
    expect(form.time).toBe("02:05");
    expect(isGood(form)).toBe(true);
    expect(scheduleOf(form)).toEqual({ hourly: 24, daily: 7, weekly: 0, monthly: 12, hour: 2, minute: 5 });
  });

  test("says what is kept", () => {
    expect(keptText(schedule)).toBe("24 hourly, 7 daily, 12 monthly");
    expect(keptText({ ...schedule, hourly: 0, daily: 0, monthly: 0 })).toBe("");
  });

  test.each([["0", true], ["4000", true], ["4001", false], ["", false], ["-1", false], ["1.5", false], ["x", false]])(
    "keeps %j: %s", (text, good) => expect(numberFault(text) === undefined).toBe(good));

  test.each([["00:00", true], ["23:59", true], ["24:00", false], ["12:60", false], ["2:30", false], ["", false]])(
    "is at %j: %s", (text, good) => expect(timeFault(text) === undefined).toBe(good));

  test("keeps no more than 4000 together", () => {
    const form = { ...formOf(schedule), hourly: "3000", daily: "988" };
    expect(sumFault(form)).toBeUndefined();
    expect(sumFault({ ...form, daily: "989" })).toBe("4001 together: at most 4000 can be kept.");
    expect(isGood({ ...form, daily: "989" })).toBe(false);
  });
});
