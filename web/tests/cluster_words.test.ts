// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { Cluster } from "../src/api/generated";
import { leaderText, takeoverText } from "../src/pages/cluster/cluster_words";

const CLUSTER: Cluster = {
  configured: true, log: "1", prefix: "/pnfsrdma", leader: "mds-a", leading_seconds: 120, position: 7, trimmed: 3, window_bytes: 0,
  window_bytes_max: 1, takeover_possible: true, servers: [], members: [], problems: [],
};

test("a leader is named with the time that it has led, where that is known", () => {
  expect(leaderText(CLUSTER)).toBe("mds-a, for 2 min 0 s");
  expect(leaderText({ ...CLUSTER, leading_seconds: null })).toBe("mds-a");
  expect(leaderText({ ...CLUSTER, leader: null, leading_seconds: null })).toBe("Nobody leads");
});

test("whether another server takes over is a sentence", () => {
  expect(takeoverText(CLUSTER)).toContain("another server takes over");
  expect(takeoverText({ ...CLUSTER, takeover_possible: false })).toContain("no other server takes over");
});
