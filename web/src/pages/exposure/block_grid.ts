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
  // Indices of the runs that lie in it.
  runs: number[];
}

// A device as cells of equal size: one block each while they fit, else as many blocks a cell as need be.
export function cellsOf(map: Pick<BlockMap, "blocks" | "runs">, cells_max: number): { cells: Cell[]; blocksPerCell: number } {
  const blocksPerCell = Math.max(1, Math.ceil(map.blocks / Math.max(1, cells_max)));
  const cells: Cell[] = [];
  for (let block = 0; block < map.blocks; block += blocksPerCell) {
    cells.push({ block, count: Math.min(blocksPerCell, map.blocks - block), state: "free", runs: [] });
  }
  map.runs.forEach((run, index) => {
    const first = Math.floor(run.block / blocksPerCell);
    const last = Math.floor((run.block + run.count - 1) / blocksPerCell);
    for (let position = first; position <= last; position++) {
      const cell = cells[position];
      if (!cell) break;
      if (STATES.indexOf(run.state) > STATES.indexOf(cell.state)) cell.state = run.state;
      if (run.grants.length > 0) cell.runs.push(index);
    }
  });
  return { cells, blocksPerCell };
}

// How many blocks are in each state.
export function countsOf(map: Pick<BlockMap, "blocks" | "runs">): Record<BlockState, number> {
  const counts = { "free": 0, "data": 0, "granted-read": 0, "granted-write": 0 };
  let named = 0;
  for (const run of map.runs) {
    counts[run.state] += run.count;
    named += run.count;
  }
  counts.free += Math.max(0, map.blocks - named);
  return counts;
}

export interface Exposed {
  layout: string;
  client: string;
  client_name: string;
  path: string | null;
  inode: number;
  writable: boolean;
  blocks: number;
  // Its first block here.
  block: number;
}

// Who can reach something, one line a layout, writers first.
export function exposedOf(runs: BlockRun[]): Exposed[] {
  const byLayout = new Map<string, Exposed>();
  for (const run of runs) {
    const seen = new Set<string>();
    for (const grant of run.grants) {
      const known = byLayout.get(grant.layout);
      const entry = known ?? { layout: grant.layout, client: grant.client, client_name: grant.client_name,
        path: grant.path, inode: grant.inode, writable: false, blocks: 0, block: run.block };
      entry.writable ||= grant.writable;
      if (!seen.has(grant.layout)) entry.blocks += run.count;
      seen.add(grant.layout);
      if (!known) byLayout.set(grant.layout, entry);
    }
  }
  return [...byLayout.values()].sort((a, b) =>
    Number(b.writable) - Number(a.writable) || b.blocks - a.blocks || a.layout.localeCompare(b.layout));
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
