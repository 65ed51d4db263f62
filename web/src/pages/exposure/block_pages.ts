// SPDX-License-Identifier: Apache-2.0
import type { BlockMap } from "../../api/generated";
import { call } from "../../api/call";

const RUNS_A_PAGE = 10000;
const PAGES_MAX = 10;

// The whole map of a device, page by page; `next_cursor` stays set when it is too scattered to be shown whole.
export async function blockMap(brick: string, signal: AbortSignal): Promise<BlockMap> {
  const path = { brick };
  const map = await call("GET /bricks/{brick}/blocks", { path, query: { limit: RUNS_A_PAGE }, signal });
  for (let page = 1; page < PAGES_MAX && map.next_cursor !== null; page++) {
    const more = await call("GET /bricks/{brick}/blocks", { path, query: { limit: RUNS_A_PAGE, cursor: map.next_cursor }, signal });
    map.runs.push(...more.runs);
    map.next_cursor = more.next_cursor;
  }
  return map;
}
