// SPDX-License-Identifier: Apache-2.0
import type { Place, Range, View } from "./list_window";

interface Props<T> {
  label: string;
  view: View<T>;
  reading: boolean;
  placeOf: (row: T) => Place;
  onRange: (range: Range) => void;
}

// Which rows of how many, and the way to others.
export function ListPages<T>({ label, view, reading, placeOf, onRange }: Props<T>) {
  const first = view.rows[0];
  const last = view.rows.at(-1);
  const begins = view.before === 0;
  const ends = view.before + view.rows.length >= view.matching;
  const step = (words: string, off: boolean, range: () => Range) => (
    <button type="button" class="button" aria-disabled={off} onClick={() => { if (!off) onRange(range()); }}>{words}</button>
  );
  return (
    <nav class="list-pages" aria-label={`Pages of ${label.toLowerCase()}`}>
      <span role="status" class="muted">{pageText(view, reading)}</span>
      {!(begins && ends) && (
        <span class="actions">
          {step("First", begins, () => ({ from: "begin" }))}
          {step("Previous", begins || !first, () => first ? { from: "before", place: placeOf(first) } : { from: "end" })}
          {step("Next", ends || !last, () => last ? { from: "after", place: placeOf(last) } : { from: "begin" })}
          {step("Last", ends, () => ({ from: "end" }))}
        </span>
      )}
    </nav>
  );
}

export function pageText({ rows, before, matching, read }: View<unknown>, reading: boolean): string {
  const count = (number: number) => number.toLocaleString("en");
  const shown = rows.length === 0 ? "0" : `${count(before + 1)} to ${count(before + rows.length)}`;
  const found = matching === read ? count(matching) : `${count(matching)} found in ${count(read)}`;
  return `${shown} of ${found}${reading ? ", still reading" : ""}`;
}
