// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";

export interface Column<T> {
  title: string;
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
}

// A table that becomes a list of cards where the screen is narrow. The roles are written out because a changed
// `display` takes them away in some browsers.
export function DataTable<T>({ caption, columns, rows, rowKey, rowClass }: Props<T>) {
  return (
    <table role="table" class="data">
      <caption class="hidden">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map((column) => (
            <th key={column.title} role="columnheader" scope="col" class={column.numeric ? "numeric" : ""}>
              <span class={column.quiet ? "hidden" : ""}>{column.title}</span>
            </th>
          ))}
        </tr>
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
