// SPDX-License-Identifier: Apache-2.0
// One page of a list of any length. The list goes through a window that keeps the rows of this page only, in whatever
// order they come: the memory does not grow with the list.

export type Value = string | number | null;

export interface ListColumn<T> {
  title: string;
  // What is sorted by, searched, and exported; a column without it (buttons) is none of that.
  value?: (row: T) => Value;
  // Of a number, for the export's head: "bytes".
  unit?: string;
}

export interface Order {
  // The title of a column, in lower case.
  column: string;
  down: boolean;
}

// Where a row stands in the order; the key decides between equal values.
export interface Place {
  value: Value;
  key: string;
}

export type Range = { from: "begin" } | { from: "end" } | { from: "after" | "before"; place: Place };

export const ROWS_A_PAGE = 50;

export interface View<T> {
  rows: T[];
  // Rows of the list that match, and how many of them come before the first one shown.
  matching: number;
  before: number;
  // Rows of the list, matching or not.
  read: number;
}

const words = new Intl.Collator("en", { numeric: true });

// Numbers by size, words as people sort them ("10.0.0.9" before "10.0.0.10"), what is not known last.
export function compareValues(a: Value, b: Value): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return words.compare(String(a), String(b));
}

export function comparePlaces(a: Place, b: Place, down: boolean): number {
  const up = compareValues(a.value, b.value) || words.compare(a.key, b.key);
  return down ? -up : up;
}

// Every word of the search is in some column.
export function matches<T>(row: T, columns: ListColumn<T>[], search: string): boolean {
  const wanted = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return true;
  const text = columns.map(({ value }) => value?.(row) ?? "").join("\n").toLowerCase();
  return wanted.every((word) => text.includes(word));
}

export function columnOf<T>(columns: ListColumn<T>[], order: Order): ListColumn<T> | undefined {
  return columns.find(({ title, value }) => value && title.toLowerCase() === order.column);
}

interface Wishes<T> {
  columns: ListColumn<T>[];
  rowKey: (row: T) => string | number;
  search: string;
  order: Order;
  range: Range;
}

export class ListWindow<T> {
  private kept: { row: T; place: Place }[] = [];
  private matching = 0;
  private outside = 0;
  private read = 0;

  constructor(private readonly wishes: Wishes<T>) {}

  add(rows: T[]): void {
    const { columns, search, order, range } = this.wishes;
    this.read += rows.length;
    for (const row of rows) {
      if (!matches(row, columns, search)) continue;
      this.matching++;
      const place = this.placeOf(row);
      const side = "place" in range ? comparePlaces(place, range.place, order.down) : 0;
      if (range.from === "after" && side <= 0) this.outside++;
      else if (range.from === "before" && side >= 0) this.outside++;
      else this.kept.push({ row, place });
    }
    this.kept.sort((a, b) => comparePlaces(a.place, b.place, order.down));
    this.kept = this.fromBehind() ? this.kept.slice(-ROWS_A_PAGE) : this.kept.slice(0, ROWS_A_PAGE);
  }

  placeOf(row: T): Place {
    const { columns, order, rowKey } = this.wishes;
    return { value: columnOf(columns, order)?.value?.(row) ?? null, key: String(rowKey(row)) };
  }

  view(): View<T> {
    const { range } = this.wishes;
    const rows = this.kept.map(({ row }) => row);
    const before = range.from === "begin" ? 0
      : range.from === "after" ? this.outside
      : this.matching - (range.from === "before" ? this.outside : 0) - rows.length;
    return { rows, matching: this.matching, before, read: this.read };
  }

  private fromBehind(): boolean {
    return this.wishes.range.from === "end" || this.wishes.range.from === "before";
  }
}
