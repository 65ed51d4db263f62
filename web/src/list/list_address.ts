// SPDX-License-Identifier: Apache-2.0
import { columnOf, type ListColumn, type Order, type Place, type Range } from "./list_window";

// What a list shows, in the browser's address: a reload, a bookmark and a shared link show the same. A page is named by
// the row it begins behind (or ends before), as the API's cursors are: a list that changes meanwhile repeats nothing.
export interface ListAddress {
  search: string;
  order: Order;
  range: Range;
}

type Parameters = Record<string, string | null>;

// `name` tells lists on one page apart; "" is the page's main list.
function parameter(name: string, what: string): string {
  return name ? `${name}.${what}` : what;
}

export function orderText({ column, down }: Order): string {
  return (down ? "-" : "") + column;
}

function orderOf(text: string): Order {
  return text.startsWith("-") ? { column: text.slice(1), down: true } : { column: text, down: false };
}

export function rangeText(range: Range): string | null {
  if (range.from === "begin") return null;
  if (range.from === "end") return "end";
  return `${range.from}:${JSON.stringify([range.place.value, range.place.key])}`;
}

// What nobody can have got from here is the beginning.
export function rangeOf(text: string | null): Range {
  if (text === "end") return { from: "end" };
  const [, from, place] = /^(after|before):(.*)$/s.exec(text ?? "") ?? [];
  if ((from !== "after" && from !== "before") || place === undefined) return { from: "begin" };
  const known = placeOf(place);
  return known ? { from, place: known } : { from: "begin" };
}

function placeOf(text: string): Place | undefined {
  try {
    const [value, key] = JSON.parse(text) as unknown[];
    const isValue = value === null || typeof value === "string" || typeof value === "number";
    return isValue && typeof key === "string" ? { value, key } : undefined;
  } catch {
    return undefined;
  }
}

export function readAddress<T>(query: URLSearchParams, name: string, columns: ListColumn<T>[], standard: string): ListAddress {
  const asked = orderOf(query.get(parameter(name, "sort")) ?? standard);
  return {
    search: query.get(parameter(name, "search")) ?? "",
    order: columnOf(columns, asked) ? asked : orderOf(standard),
    range: rangeOf(query.get(parameter(name, "page"))),
  };
}

// Another search or another order begins at the first page.
export function searchParameters(name: string, search: string): Parameters {
  return { [parameter(name, "search")]: search, [parameter(name, "page")]: null };
}

export function orderParameters(name: string, order: Order, standard: string): Parameters {
  const text = orderText(order);
  return { [parameter(name, "sort")]: text === standard ? null : text, [parameter(name, "page")]: null };
}

export function rangeParameters(name: string, range: Range): Parameters {
  return { [parameter(name, "page")]: rangeText(range) };
}
