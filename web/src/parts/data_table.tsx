// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import type { ListColumn, Order } from "../list/list_window";

export interface Column<T> extends ListColumn<T> {
  cell: (row: T) => ComponentChildren;
  // Right-aligned, tabular figures.
  numeric?: boolean;
  // The title is for screen readers only (buttons speak for themselves).
  quiet?: boolean;
}

interface Props<T> {
  caption: string;
  columns: Column<T>[];
  rows: T[];
  rowKey: (row: T) => string | number;
  // A row's own tone: "selected", "bad".
  rowClass?: (row: T) => string;
  // How the rows are sorted, and what the heads of columns with a value do about it.
  order?: Order;
  onOrder?: (order: Order) => void;
}

// A table that becomes a list of cards where the screen is narrow. The roles are written out because a changed
// `display` takes them away in some browsers.
export function DataTable<T>({ caption, columns, rows, rowKey, rowClass, order, onOrder }: Props<T>) {
  return (
    <table role="table" class={onOrder ? "data data-sortable" : "data"}>
      <caption class="hidden">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">{columns.map((column) => <Head key={column.title} column={column} order={order} onOrder={onOrder} />)}</tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={rowKey(row)} role="row" class={rowClass?.(row) ?? ""}>
            {columns.map((column) => (
              <td key={column.title} role="cell" data-title={column.quiet ? "" : column.title}
                class={column.numeric ? "numeric" : ""}>
                <div class="cell">{column.cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface HeadProps<T> {
  column: Column<T>;
  order: Order | undefined;
  onOrder: ((order: Order) => void) | undefined;
}

// Pressed once it sorts upwards, pressed again downwards.
function Head<T>({ column, order, onOrder }: HeadProps<T>) {
  const own = column.title.toLowerCase();
  const sorted = order?.column === own ? (order.down ? "descending" : "ascending") : "none";
  return (
    <th role="columnheader" scope="col" class={column.numeric ? "numeric" : ""} aria-sort={onOrder && column.value ? sorted : undefined}>
      {onOrder && column.value
        ? (
          <button type="button" class="sort" onClick={() => onOrder({ column: own, down: sorted === "ascending" })}>
            {column.title}<span aria-hidden="true">{sorted === "ascending" ? " ▲" : sorted === "descending" ? " ▼" : ""}</span>
          </button>
        )
        : <span class={column.quiet ? "hidden" : ""}>{column.title}</span>}
    </th>
  );
}
