// SPDX-License-Identifier: Apache-2.0
import type { CallOptions } from "../api/call";
import { pagesOf, type Item, type Paged } from "../api/every_page";
import type { Source } from "./use_view";

// A list of the API.
export function listOf<Name extends Paged>(name: Name, interval_ms: number, options: CallOptions<Name> = {}): Source<Item<Name>> {
  return {
    key: JSON.stringify([name, options]), interval_ms,
    pages: (signal) => pagesOf(name, { ...options, signal }),
  };
}

// Rows that the page has already.
export function rowsOf<T>(key: string, rows: T[]): Source<T> {
  return { key, rows, interval_ms: 0, pages: async function* () { yield rows; } };
}
