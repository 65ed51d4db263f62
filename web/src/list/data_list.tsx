// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { asProblem } from "../api/problem";
import { agoText } from "../format/time";
import { notify } from "../notices";
import { DataTable, type Column } from "../parts/data_table";
import { ProblemNote } from "../parts/problem_note";
import { useNow } from "../parts/use_now";
import { go, hrefWith, useRoute } from "../route";
import { csvFile, save } from "./csv";
import { orderParameters, rangeParameters, readAddress, searchParameters } from "./list_address";
import { ListPages } from "./list_pages";
import { ListSearch } from "./list_search";
import { useView, type Source } from "./use_view";

interface Props<T> {
  caption: string;
  from: Source<T>;
  columns: Column<T>[];
  rowKey: (row: T) => string | number;
  rowClass?: (row: T) => string;
  // Title of the column it is sorted by at first, in lower case; "-" before it: downwards.
  sort: string;
  // Tells lists on one page apart, in the address.
  name?: string;
  // What is said where the list has no rows at all.
  empty: ComponentChildren;
  // Another number: read again now.
  changes?: number;
  // What stands below the table, of the rows shown.
  below?: (rows: T[]) => ComponentChildren;
}

// Every list of the console: searched, sorted, in pages, saved as CSV. What it shows stands in the address.
export function DataList<T>({ caption, from, columns, rowKey, rowClass, sort, name = "", empty, changes = 0, below }: Props<T>) {
  const address = readAddress(useRoute().query, name, columns, sort);
  const { view, reading, problem, at, refresh } = useView(from, address, columns, rowKey);
  const now = useNow();
  const [saving, setSaving] = useState(false);
  useEffect(() => {
    if (changes > 0) refresh();
  }, [changes]);

  const saveAll = async () => {
    setSaving(true);
    try {
      save(await csvFile(columns, address.search, from.pages(new AbortController().signal)), `${caption.toLowerCase()}.csv`);
    } catch (error) {
      notify(asProblem(error).message, "bad");
    }
    setSaving(false);
  };
  const note = <ProblemNote problem={problem} retry={refresh} />;
  if (!view) return problem ? note : <p class="loading" role="status">Loading…</p>;
  if (view.read === 0 && !reading && !address.search) return <>{note}{empty}</>;
  const placeOf = (row: T) => ({
    value: columns.find(({ title }) => title.toLowerCase() === address.order.column)?.value?.(row) ?? null,
    key: String(rowKey(row)),
  });
  return (
    <div class="list">
      {note}
      {problem && at > 0 && <p class="muted">What follows is from {agoText(now - at)}.</p>}
      <div class="list-tools">
        <ListSearch label={`Search ${caption.toLowerCase()}`} value={address.search}
          onValue={(search) => go(hrefWith(searchParameters(name, search)), "replace")} />
        <button type="button" class="button" disabled={saving} title="All rows that match, in the server's order"
          aria-label={`Save ${caption.toLowerCase()} as CSV`} onClick={() => void saveAll()}>{saving ? "Saving…" : "CSV"}</button>
      </div>
      {view.rows.length === 0 && !reading
        ? <p class="muted">{view.matching > 0 ? "Nothing stands behind this place any more." : "No matches."}</p>
        : <DataTable caption={caption} rows={view.rows} columns={columns} rowKey={rowKey} rowClass={rowClass} order={address.order}
          onOrder={(order) => go(hrefWith(orderParameters(name, order, sort)), "replace")} />}
      <ListPages label={caption} view={view} reading={reading} placeOf={placeOf}
        onRange={(range) => go(hrefWith(rangeParameters(name, range)))} />
      {below?.(view.rows)}
    </div>
  );
}
