// SPDX-License-Identifier: Apache-2.0
import type { BlockMap, BlockRun } from "../../api/generated";

export type BlockState = BlockRun["state"];
export type BlockGrant = BlockRun["grants"][number];

// In rising order of what they mean for safety: the strongest state of a cell's blocks is its colour.
export const STATES: BlockState[] = ["free", "data", "granted-read", "granted-write"];

export interface Cell {
  block: number;
  count: number;
  state: BlockState;
  // Blocks in use.
  used: number;
  // Bytes that a client reaches, and those of them that one can write.
  reachable: number;
  writable: number;
  // Indices of the runs that lie in it.
  runs: number[];
}

// A device as cells of equal size: one block each while they fit, else as many blocks a cell as need be.
export function cellsOf(map: Pick<BlockMap, "blocks" | "runs">, cells_max: number): { cells: Cell[]; blocksPerCell: number } {
  const blocksPerCell = Math.max(1, Math.ceil(map.blocks / Math.max(1, cells_max)));
  const cells: Cell[] = [];
  for (let block = 0; block < map.blocks; block += blocksPerCell) {
    cells.push({ block, count: Math.min(blocksPerCell, map.blocks - block), state: "free", used: 0, reachable: 0, writable: 0, runs: [] });
  }
  map.runs.forEach((run, index) => {
    const first = Math.floor(run.block / blocksPerCell);
    const last = Math.floor((run.block + run.count - 1) / blocksPerCell);
    for (let position = first; position <= last; position++) {
      const cell = cells[position];
      if (!cell) break;
      if (STATES.indexOf(run.state) > STATES.indexOf(cell.state)) cell.state = run.state;
      if (run.grants.length > 0) cell.runs.push(index);
      const blocks = Math.min(run.block + run.count, cell.block + cell.count) - Math.max(run.block, cell.block);
      if (run.state !== "free") cell.used += blocks;
      // A run of several blocks is reached evenly: the server cuts where that changes.
      cell.reachable += run.bytes * blocks / run.count;
      cell.writable += run.writable_bytes * blocks / run.count;
    }
  });
  return { cells, blocksPerCell };
}

// How many bytes are in each state; together they are the device.
export function bytesOf(map: Pick<BlockMap, "blocks" | "block_bytes" | "runs">): Record<BlockState, number> {
  const bytes = { "free": map.blocks * map.block_bytes, "data": 0, "granted-read": 0, "granted-write": 0 };
  for (const run of map.runs) {
    if (run.state === "free") continue;
    const all = run.count * map.block_bytes;
    bytes.free -= all;
    bytes.data += all - run.bytes;
    bytes["granted-read"] += run.bytes - run.writable_bytes;
    bytes["granted-write"] += run.writable_bytes;
  }
  return bytes;
}

export interface Exposed {
  layout: string;
  client: string;
  client_name: string;
  path: string | null;
  inode: number;
  writable: boolean;
  // How much of the device it reaches.
  bytes: number;
  // Its first block here.
  block: number;
}

// The runs inside of some blocks, cut to them.
export function runsWithin(runs: BlockRun[], { block, count }: { block: number; count: number }): BlockRun[] {
  return runs.flatMap((run) => {
    const first = Math.max(run.block, block);
    const blocks = Math.min(run.block + run.count, block + count) - first;
    if (blocks <= 0) return [];
    const part = blocks / run.count;
    return [{ ...run, block: first, count: blocks, bytes: run.bytes * part, writable_bytes: run.writable_bytes * part,
      grants: run.grants.map((grant) => ({ ...grant, bytes: grant.bytes * part })) }];
  });
}

// Who can reach something, one line a layout, writers first.
export function exposedOf(runs: BlockRun[]): Exposed[] {
  const byLayout = new Map<string, Exposed>();
  for (const run of runs) {
    for (const grant of run.grants) {
      const known = byLayout.get(grant.layout);
      const entry = known ?? { layout: grant.layout, client: grant.client, client_name: grant.client_name,
        path: grant.path, inode: grant.inode, writable: false, bytes: 0, block: run.block };
      entry.writable ||= grant.writable;
      entry.bytes += grant.bytes;
      if (!known) byLayout.set(grant.layout, entry);
    }
  }
  return [...byLayout.values()].sort((a, b) =>
    Number(b.writable) - Number(a.writable) || b.bytes - a.bytes || a.layout.localeCompare(b.layout));
}

export const STATE_WORDS: Record<BlockState, string> = {
  "free": "free", "data": "data, nobody reaches it", "granted-read": "readable by a client", "granted-write": "writable by a client",
};

// The next cell in a direction that a client can reach; undefined: there is none.
export function nextExposed(cells: Cell[], from: number, step: 1 | -1): number | undefined {
  for (let position = from + step; position >= 0 && position < cells.length; position += step) {
    if ((cells[position]?.runs.length ?? 0) > 0) return position;
  }
  return undefined;
}
