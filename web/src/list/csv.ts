// SPDX-License-Identifier: Apache-2.0
import { matches, type ListColumn, type Value } from "./list_window";

// What a spreadsheet would run as a formula; a file may be called so.
const FORMULA = /^[=+\-@\t\r]/;

export function csvField(value: Value): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csvLine(values: Value[]): string {
  return `${values.map(csvField).join(",")}\r\n`;
}

export function csvHead<T>(columns: ListColumn<T>[]): string {
  return csvLine(columns.filter(({ value }) => value).map(({ title, unit }) => (unit ? `${title} (${unit})` : title)));
}

// All rows that match, in the order in which the server has them (RFC 4180). The browser keeps finished parts outside of
// the page's memory.
export async function csvFile<T>(columns: ListColumn<T>[], search: string, pages: AsyncIterable<T[]>): Promise<Blob> {
  let file = new Blob([csvHead(columns)], { type: "text/csv" });
  for await (const rows of pages) {
    const lines = rows.filter((row) => matches(row, columns, search))
      .map((row) => csvLine(columns.flatMap(({ value }) => (value ? [value(row)] : []))));
    file = new Blob([file, ...lines], { type: "text/csv" });
  }
  return file;
}

export function save(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
