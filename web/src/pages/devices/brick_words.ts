// SPDX-License-Identifier: Apache-2.0
import type { Brick } from "../../api/generated";
import type { Tone } from "../../parts/badge";

// What people call a brick: where it is, not what its pool is numbered.
export function brickName(brick: Pick<Brick, "address" | "id">): string {
  const address = brick.address.replace(/^(unix|tcp):/, "");
  return address || brick.id;
}

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

export function durabilityMeaning(durability: Brick["durability"]): string {
  switch (durability) {
    case "volatile": return "nothing: for trying and measuring";
    case "process": return "a crash of the programs, not of the host";
    case "power": return "loss of power";
    case "unknown": return "nobody knows yet: it was never reached";
  }
}

// The netid of a path as people say it.
export function transportName(netid: string): string {
  return netid.startsWith("rdma") ? "RDMA device" : "iWARP over TCP";
}

export function kindName(kind: string): string {
  const names: Record<string, string> = {
    devdax: "device DAX", fsdax: "file on a DAX file system", file: "plain file", tmpfs: "memory file system",
  };
  return names[kind] ?? kind;
}
