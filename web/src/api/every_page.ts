// SPDX-License-Identifier: Apache-2.0
import type { Operations } from "./generated";
import { call, type CallOptions, type OperationName } from "./call";

export type Paged = {
  [Name in OperationName]: Operations[Name]["answer"] extends { items: unknown[]; next_cursor: string | null } ? Name : never;
}[OperationName];
export type Item<Name extends Paged> = Operations[Name]["answer"] extends { items: (infer T)[] } ? T : never;

// Something is to be seen soon; the rest comes in as few answers as the API allows.
const ITEMS_FIRST = 100;
const ITEMS_A_PAGE = 1000;
const ANSWERS_MAX = 20;

// A list of the API, one answer after the other; only the cursor is kept between them. Not for events, whose list has
// no end.
export async function* pagesOf<Name extends Paged>(
  name: Name, options: CallOptions<Name> = {}): AsyncGenerator<Item<Name>[]> {
  let cursor: string | undefined;
  do {
    const query = { limit: cursor === undefined ? ITEMS_FIRST : ITEMS_A_PAGE, ...(options.query as object | undefined), cursor } as Operations[Name]["query"];
    const answer = (await call(name, { ...options, query })) as { items: Item<Name>[]; next_cursor: string | null };
    yield answer.items;
    cursor = answer.next_cursor ?? undefined;
  } while (cursor !== undefined);
}

// All items of a list that is short by its nature (bricks, exports), of at most ANSWERS_MAX answers.
export async function everyPage<Name extends Paged>(
  name: Name, options: CallOptions<Name> = {}): Promise<{ items: Item<Name>[] }> {
  const items: Item<Name>[] = [];
  let answers = 0;
  for await (const page of pagesOf(name, options)) {
    items.push(...page);
    if (++answers === ANSWERS_MAX) break;
  }
  return { items };
}
