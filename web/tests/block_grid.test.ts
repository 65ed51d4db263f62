// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import type { BlockRun } from "../src/api/generated";
import { cellsOf, countsOf, exposedOf, nextExposed } from "../src/pages/exposure/block_grid";
import { cellAt, gridShape } from "../src/pages/exposure/draw_blocks";

function grant(layout: string, writable: boolean): BlockRun["grants"][number] {
  return { client: "0".repeat(16), client_name: "host", inode: 2, path: "/f", layout, writable, offset: 0, length: 4096 };
}

const RUNS: BlockRun[] = [
  { block: 0, count: 4, state: "data", grants: [] },
  { block: 4, count: 2, state: "granted-read", grants: [grant("a", false)] },
  { block: 6, count: 1, state: "granted-write", grants: [grant("a", false), grant("b", true)] },
  { block: 10, count: 3, state: "granted-write", grants: [grant("b", true), grant("b", true)] },
];
const MAP = { blocks: 16, runs: RUNS };

describe("cells", () => {
  test("are blocks while they fit; what no run names is free", () => {
    const { cells, blocksPerCell } = cellsOf(MAP, 100);
    expect(blocksPerCell).toBe(1);
    expect(cells.map((cell) => cell.state[0] + (cell.state.at(-1) ?? "")).join(" ")).toBe(
      "da da da da gd gd ge fe fe fe ge ge ge fe fe fe");
  });

  test("show the strongest state of their blocks when they hold several", () => {
    const { cells, blocksPerCell } = cellsOf(MAP, 4);
    expect(blocksPerCell).toBe(4);
    expect(cells.map((cell) => cell.state)).toEqual(["data", "granted-write", "granted-write", "granted-write"]);
    expect(cells[1]?.runs).toEqual([1, 2]);
  });

  test("cover every block once, also where the last is smaller", () => {
    for (const cells_max of [1, 3, 5, 7, 16, 17]) {
      const { cells } = cellsOf(MAP, cells_max);
      expect(cells.length).toBeLessThanOrEqual(cells_max);
      expect(cells.reduce((sum, cell) => sum + cell.count, 0)).toBe(16);
    }
  });

  test("of an empty device are none", () => expect(cellsOf({ blocks: 0, runs: [] }, 10).cells).toEqual([]));

  test("somebody reaches can be walked through", () => {
    const { cells } = cellsOf(MAP, 100);
    expect(nextExposed(cells, -1, 1)).toBe(4);
    expect(nextExposed(cells, 6, 1)).toBe(10);
    expect(nextExposed(cells, 4, -1)).toBeUndefined();
  });
});

test("blocks are counted by state", () => {
  expect(countsOf(MAP)).toEqual({ "free": 6, "data": 4, "granted-read": 2, "granted-write": 4 });
});

test("a layout is one line, writers first, and a block counts once for it", () => {
  const lines = exposedOf(RUNS).map(({ layout, writable, blocks, block }) => ({ layout, writable, blocks, block }));
  expect(lines).toEqual([
    { layout: "b", writable: true, blocks: 4, block: 6 },
    { layout: "a", writable: false, blocks: 3, block: 4 },
  ]);
});

describe("the picture", () => {
  test("gives every cell a place of its own and finds it again", () => {
    for (const [width, count] of [[320, 1000], [640, 4096], [300, 1], [10, 50]] as const) {
      const shape = gridShape(width, count);
      expect(shape.columns * shape.rows).toBeGreaterThanOrEqual(count);
      for (const position of [0, 1, count - 1].filter((each) => each < count)) {
        const x = (position % shape.columns) * shape.pitch + 1;
        const y = Math.floor(position / shape.columns) * shape.pitch + 1;
        expect(cellAt(shape, count, x, y)).toBe(position);
      }
      expect(cellAt(shape, count, -1, 0)).toBeNull();
      expect(cellAt(shape, count, shape.columns * shape.pitch, 0)).toBeNull();
    }
  });
});
