// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { Cluster } from "../src/api/generated";
import { costFacts, databaseText, leaderText, logText, memberRole, takeoversText, takeoverText } from "../src/pages/cluster/cluster_words";

const CLUSTER: Cluster = {
  configured: true, log: "1", prefix: "/pnfsrdma", leader: "mds-a", leading_seconds: 120, position: 7, trimmed: 3, window_bytes: 0,
  window_bytes_max: 1, takeover_possible: true, takeovers: 0, costs: null, servers: [], members: [], problems: [],
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

test("what the log costs is said by the server that leads, once it has written", () => {
  expect(costFacts(null)).toEqual([]);
  const costs = { values: 0, bytes: 0, latency_us: { p50: 0, p99: 0 }, checkpoint: 12, checkpoint_seconds: 90 };
  expect(costFacts(costs)).toEqual([["On its medium", "up to 12, 1 min ago"]]);
  const facts = costFacts({ ...costs, values: 4, bytes: 4096, latency_us: { p50: 1500, p99: 20000 } });
  expect(facts[0]?.[1]).toBe("4 values of 1.00 KiB on average");
  expect(facts[1]?.[1]).toBe("half of them up to 1.50 ms, 99 % up to 20.0 ms");
});

test("take-overs are counted", () => {
  expect(takeoversText(CLUSTER)).toBe("none so far");
  expect(takeoversText({ ...CLUSTER, takeovers: 3 })).toContain("3 of a lead");
});

test("a member of etcd without a metadata server is the witness, where names tell", () => {
  const server = (name: string) => ({ name, state: "follows", position: 1, behind: 0 }) as const;
  const member = (name: string) => ({ id: name, name, address: "", state: "answers", leads: false, version: "", database_bytes: 0 }) as const;
  const cluster = { ...CLUSTER, servers: [server("a"), server("b")], members: [member("a"), member("b"), member("c")] };
  expect(cluster.members.map((each) => memberRole(each, cluster))).toEqual(["beside a metadata server", "beside a metadata server", "witness"]);
  const own = { ...cluster, members: [member("m1"), member("m2")] };
  expect(memberRole(own.members[0] ?? member(""), own)).toBe("");
});

test("without an answer of etcd nothing is claimed of the log", () => {
  expect(logText(CLUSTER)).toBe("7 values, trimmed to 3");
  const silent = { ...CLUSTER, log: "", position: 0, trimmed: 0 };
  expect([logText(silent), takeoversText(silent)]).toEqual(["not known", "not known"]);
  expect([databaseText({ database_bytes: 0 }), databaseText({ database_bytes: 2048 })]).toEqual(["not known", "2.00 KiB"]);
});
