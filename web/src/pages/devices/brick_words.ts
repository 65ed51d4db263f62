// SPDX-License-Identifier: Apache-2.0
import type { Brick } from "../../api/generated";
import type { Tone } from "../../parts/badge";

// What people call a brick; without a name, where it is.
export function brickName(brick: Pick<Brick, "name" | "address" | "id">): string {
  if (brick.name) return brick.name;
  const address = brick.address.replace(/^(unix|tcp):/, "");
  return address || brick.id;
}

// What no file has, as df shows it: whole free blocks, and what is free in blocks that files use in part.
export function freeBytes(brick: Pick<Brick, "capacity_bytes" | "used_bytes">): number {
  return Math.max(0, brick.capacity_bytes - brick.used_bytes);
}

// The part of that which lies in blocks in use, or is being zeroed: other files get it.
export function betweenBytes(brick: Pick<Brick, "capacity_bytes" | "free_bytes" | "used_bytes">): number {
  return Math.max(0, freeBytes(brick) - brick.free_bytes);
}

export const FILES_MEANING = "space given ahead to files that are open counts, too";
export const BETWEEN_MEANING = "free, in blocks that files use in part or that are being zeroed: other files get it";

export function stateTone(state: Brick["state"]): Tone {
  switch (state) {
    case "ready": return "good";
    case "connecting":
    case "reconciling":
    case "draining": return "warn";
    case "away":
    case "fenced":
    case "foreign": return "bad";
  }
}

// How calls to the brick are protected: by TLS, or because only this host has its socket.
export function controlText(brick: Pick<Brick, "address" | "tls" | "state">): string {
  if (brick.tls) return "TLS";
  if (brick.address.startsWith("unix:")) return "this host only";
  return brick.state === "connecting" ? "not known" : "no TLS";
}

export function controlTone(brick: Pick<Brick, "address" | "tls" | "state">): Tone {
  switch (controlText(brick)) {
    case "no TLS": return "warn";
    case "not known": return "quiet";
    default: return "good";
  }
}

export function durabilityMeaning(durability: Brick["durability"]): string {
  switch (durability) {
    case "volatile": return "nothing: for experiments and benchmarks";
    case "process": return "a crash of the programs, not of the host";
    case "power": return "loss of power";
    case "unknown": return "unknown: it was never reached";
  }
}

// The netid of a path as people say it.
export function transportName(netid: string): string {
  return netid.startsWith("rdma") ? "RDMA device" : "iWARP over TCP";
}

export function kindName(kind: string): string {
  const names: Record<string, string> = {
    devdax: "device DAX", fsdax: "file on a DAX file system", file: "plain file", tmpfs: "tmpfs",
  };
  return names[kind] ?? kind;
}
