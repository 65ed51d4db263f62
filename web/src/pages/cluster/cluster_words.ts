// SPDX-License-Identifier: Apache-2.0
import type { Cluster } from "../../api/generated";
import { durationText } from "../../format/time";
import type { Tone } from "../../parts/badge";

type Server = Cluster["servers"][number];
type Member = Cluster["members"][number];

export const SERVER_TONES: Record<Server["state"], Tone> = { leads: "good", follows: "good", away: "bad" };
export const MEMBER_TONES: Record<Member["state"], Tone> = { answers: "good", silent: "bad" };

export function leaderText(cluster: Cluster): string {
  if (cluster.leader === null) return "Nobody leads";
  return cluster.leading_seconds === null ? cluster.leader : `${cluster.leader}, for ${durationText(cluster.leading_seconds)}`;
}

export function takeoverText(cluster: Cluster): string {
  return cluster.takeover_possible
    ? "If the host that leads is lost, another server takes over."
    : "If the host that leads is lost, no other server takes over.";
}
