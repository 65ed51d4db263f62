// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import type { BlockRun } from "../src/api/generated";
import { bytesOf, cellsOf, exposedOf, nextExposed, runsWithin } from "../src/pages/exposure/block_grid";
import { cellAt, filledHeight, gridShape } from "../src/pages/exposure/draw_blocks";

function grant(layout: string, writable: boolean, bytes = 4096): BlockRun["grants"][number] {
  return { client: "0".repeat(16), client_name: "host", inode: 2, path: "/f", layout, writable, offset: 0, length: 4096, bytes };
}

const BLOCK = 2 << 20;
const RUNS: BlockRun[] = [
  { block: 0, count: 4, state: "data", bytes: 0, writable_bytes: 0, grants: [] },
  { block: 4, count: 2, state: "granted-read", bytes: 2 * BLOCK, writable_bytes: 0, grants: [grant("a", false, 2 * BLOCK)] },
  { block: 6, count: 1, state: "granted-write", bytes: 32768, writable_bytes: 4096,
    grants: [grant("a", false, 32768), grant("b", true, 4096)] },
  { block: 10, count: 3, state: "granted-write", bytes: 3 * BLOCK, writable_bytes: 3 * BLOCK,
    grants: [grant("b", true, 3 * BLOCK), grant("b", true, 0)] },
];
const MAP = { blocks: 16, block_bytes: BLOCK, runs: RUNS };

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

test("bytes are counted by state, and make up the device", () => {
  const bytes = bytesOf(MAP);
  expect(bytes).toEqual({ "free": 6 * BLOCK, "data": 5 * BLOCK - 32768, "granted-read": 2 * BLOCK + 28672,
    "granted-write": 3 * BLOCK + 4096 });
  expect(Object.values(bytes).reduce((sum, each) => sum + each)).toBe(16 * BLOCK);
});

test("a layout is one line, writers first, with the bytes that it reaches", () => {
  const lines = exposedOf(RUNS).map(({ layout, writable, bytes, block }) => ({ layout, writable, bytes, block }));
  expect(lines).toEqual([
    { layout: "b", writable: true, bytes: 3 * BLOCK + 4096, block: 6 },
    { layout: "a", writable: false, bytes: 2 * BLOCK + 32768, block: 4 },
  ]);
});

test("of some blocks only their own bytes count", () => {
  const [read, write] = runsWithin(RUNS, { block: 5, count: 2 });
  expect(read).toMatchObject({ block: 5, count: 1, bytes: BLOCK });
  expect(read?.grants[0]?.bytes).toBe(BLOCK);
  expect(write).toMatchObject({ block: 6, count: 1, bytes: 32768 });
  expect(runsWithin(RUNS, { block: 7, count: 3 })).toEqual([]);
});

test("a cell knows how much of it is reached", () => {
  const { cells } = cellsOf(MAP, 100);
  expect(cells[6]).toMatchObject({ reachable: 32768, writable: 4096, used: 1 });
  expect(cells[11]).toMatchObject({ reachable: BLOCK, writable: BLOCK });
  expect(cellsOf(MAP, 4).cells[1]).toMatchObject({ count: 4, used: 3, reachable: 2 * BLOCK + 32768, writable: 4096 });
});

describe("the picture", () => {
  test("fills a cell as far as it is reached, and shows the least reach", () => {
    expect(filledHeight(0, BLOCK, 20)).toBe(0);
    expect(filledHeight(32768, BLOCK, 20)).toBe(3);
    expect(filledHeight(BLOCK / 2, BLOCK, 20)).toBe(10);
    expect(filledHeight(BLOCK, BLOCK, 20)).toBe(20);
  });

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
