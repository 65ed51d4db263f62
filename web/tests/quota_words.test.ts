// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { Quota } from "../src/api/generated";
import {
  anyFault, changesOf, countOf, graceEnds, graceOf, graceText, limitFault, limitsText, limitText, NO_LIMITS, sizeOf, stateWords, textsOf, worstState,
} from "../src/pages/quotas/quota_words";

const quota: Quota = {
  kind: "user", id: 1000, name: "alice", complete: true, limits_from: "own",
  space_used_bytes: 1, space_soft_bytes: 10 * 2 ** 30, space_hard_bytes: 0, space_state: "ok", space_grace_ends: null,
  inodes_used: 1, inodes_soft: 0, inodes_hard: 50_000, inodes_state: "ok", inodes_grace_ends: null,
};

test.each([["", 0], ["0", 0], ["4096", 4096], ["10G", 10 * 2 ** 30], ["10 GiB", 10 * 2 ** 30], ["1.5t", 1.5 * 2 ** 40], ["5B", 5],
  ["G", undefined], ["-1", undefined], ["10X", undefined], ["1.3", undefined], ["9P", undefined], ["10GB", undefined]])(
  "the size %j is %s", (text, bytes) => expect(sizeOf(text)).toBe(bytes));
test.each([["", 0], ["50K", 50_000], ["1.5M", 1_500_000], ["12", 12], ["1.5", undefined], ["3GiB", undefined], ["x", undefined]])(
  "the number %j is %s", (text, count) => expect(countOf(text)).toBe(count));
test.each([["7d", 604_800], ["12h", 43_200], ["90s", 90], ["0", 0], ["7", undefined], ["", undefined], ["3651d", undefined]])(
  "the grace period %j is %s", (text, seconds) => expect(graceOf(text)).toBe(seconds));
test.each([[604_800, "7d"], [43_200, "12h"], [90, "90s"], [0, "0"], [120, "2m"]])(
  "%i seconds are %s", (seconds, text) => expect(graceText(seconds)).toBe(text));

test("what a form shows of a limit is the limit, exactly", () => {
  for (const limit of [0, 1, 1023, 1024, 10 * 2 ** 30, 10 * 2 ** 30 + 1, 2 ** 50, 2 ** 53 - 1]) {
    expect(sizeOf(limitText("space_hard_bytes", limit))).toBe(limit);
    expect(countOf(limitText("inodes_hard", limit))).toBe(limit);
  }
});

test("only what was changed is sent, and an emptied limit is none", () => {
  const before = textsOf(quota);
  expect(changesOf(before, before)).toEqual({});
  expect(changesOf(before, { ...before, space_soft_bytes: "10240M" })).toEqual({});
  expect(changesOf(before, { ...before, space_soft_bytes: "", inodes_hard: "60K" })).toEqual({ space_soft_bytes: 0, inodes_hard: 60_000 });
});

test("everybody's limits in a line", () => {
  expect(limitsText(quota)).toBe("space soft 10G, inodes hard 50K");
  expect(limitsText({ ...quota, space_soft_bytes: 0, inodes_hard: 0 })).toBe("none");
});

test("a soft limit above the hard one is refused before the server is asked", () => {
  const texts = { ...NO_LIMITS, space_soft_bytes: "2G", space_hard_bytes: "1G" };
  expect(limitFault(texts, "space_soft_bytes")).toContain("above the hard limit");
  expect(limitFault(texts, "space_hard_bytes")).toBeUndefined();
  expect(anyFault(texts)).toBe(true);
  expect(anyFault({ ...texts, space_hard_bytes: "" })).toBe(false);
});

test("a row says the worse of space and inodes, and nothing before it is counted", () => {
  expect(stateWords(quota).word).toBe("ok");
  expect(worstState({ ...quota, space_state: "over-soft", inodes_state: "full" })).toBe("full");
  expect(stateWords({ ...quota, inodes_state: "grace-over" }).word).toBe("grace period over");
  expect(stateWords({ ...quota, complete: false }).word).toBe("counting");
  expect(stateWords({ ...quota, space_soft_bytes: 0, inodes_hard: 0 }).word).toBe("no limit");
});

test("the grace period that ends first is shown", () => {
  expect(graceEnds(quota)).toBeNull();
  expect(graceEnds({ ...quota, space_grace_ends: "2026-03-08T00:00:00Z", inodes_grace_ends: "2026-03-02T00:00:00Z" })).toBe("2026-03-02T00:00:00Z");
});
