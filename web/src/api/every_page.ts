// SPDX-License-Identifier: Apache-2.0
import type { Operations } from "./generated";
import { call, type CallOptions, type OperationName } from "./call";

type Paged = {
  [Name in OperationName]: Operations[Name]["answer"] extends { items: unknown[]; next_cursor: string | null } ? Name : never;
}[OperationName];
type Item<Name extends Paged> = Operations[Name]["answer"] extends { items: (infer T)[] } ? T : never;

const PAGES_MAX = 20;
const ITEMS_A_PAGE = 500;

export interface Listing<T> {
  items: T[];
  // There are more than the page shows.
  truncated: boolean;
}

// Every item of a list, page by page, up to PAGES_MAX * ITEMS_A_PAGE.
export async function everyPage<Name extends Paged>(
  name: Name, options: CallOptions<Name> = {}): Promise<Listing<Item<Name>>> {
  const items: Item<Name>[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < PAGES_MAX; page++) {
    const query = { limit: ITEMS_A_PAGE, ...(options.query as object | undefined), cursor } as Operations[Name]["query"];
    const answer = (await call(name, { ...options, query })) as { items: Item<Name>[]; next_cursor: string | null };
    items.push(...answer.items);
    if (answer.next_cursor === null) return { items, truncated: false };
    cursor = answer.next_cursor;
  }
  return { items, truncated: true };
}
