// SPDX-License-Identifier: Apache-2.0
import type { Cluster } from "../../api/generated";
import { bytesText, countText, microseconds, quantityText } from "../../format/number";
import { agoText, durationText } from "../../format/time";
import type { Tone } from "../../parts/badge";

type Server = Cluster["servers"][number];
type Member = Cluster["members"][number];

export const SERVER_TONES: Record<Server["state"], Tone> = { leads: "good", follows: "good", away: "bad" };
export const MEMBER_TONES: Record<Member["state"], Tone> = { answers: "good", silent: "bad" };

// What a member of etcd is for. `pnfsrdma cluster` gives it the name of its host's metadata server; one that has none only votes.
// Where no name agrees, etcd is the administrator's own, and nothing is known.
export function memberRole(member: Pick<Member, "name">, cluster: Cluster): string {
  const servers = new Set(cluster.servers.map((server) => server.name));
  if (!cluster.members.some(({ name }) => servers.has(name))) return "";
  return servers.has(member.name) ? "beside a metadata server" : "witness";
}

export function leaderText(cluster: Cluster): string {
  if (cluster.leader === null) return "Nobody leads";
  return cluster.leading_seconds === null ? cluster.leader : `${cluster.leader}, for ${durationText(cluster.leading_seconds)}`;
}

export function takeoverText(cluster: Cluster): string {
  return cluster.takeover_possible
    ? "If the host that leads is lost, another server takes over."
    : "If the host that leads is lost, no other server takes over.";
}

// While etcd does not answer nothing is known of the log.
export function logText(cluster: Cluster): string {
  return cluster.log === "" ? "not known" : `${countText(cluster.position)} values, trimmed to ${countText(cluster.trimmed)}`;
}

export function databaseText(member: Pick<Member, "database_bytes">): string {
  return member.database_bytes === 0 ? "not known" : bytesText(member.database_bytes);
}

// How often a server has lost the lead without having given it back.
export function takeoversText({ log, takeovers }: Pick<Cluster, "log" | "takeovers">): string {
  if (log === "") return "not known";
  return takeovers === 0 ? "none so far" : `${countText(takeovers)} of a lead that had not been given back`;
}

// What the log costs the server that leads, as rows of facts.
export function costFacts(costs: Cluster["costs"]): [string, string][] {
  if (costs === null) return [];
  const checkpoint: [string, string] = ["On its medium", `up to ${countText(costs.checkpoint)}, ${agoText(costs.checkpoint_seconds * 1000)}`];
  if (costs.values === 0) return [checkpoint];
  const took = (value: number) => quantityText(microseconds(value));
  return [
    ["Written since the start", `${countText(costs.values)} values of ${bytesText(costs.bytes / costs.values)} on average`],
    ["Time for a value", `half of them up to ${took(costs.latency_us.p50)}, 99 % up to ${took(costs.latency_us.p99)}`],
    checkpoint,
  ];
}
