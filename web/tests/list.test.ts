// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { csvFile } from "../src/list/csv";
import { orderParameters, rangeOf, rangeParameters, rangeText, readAddress, searchParameters } from "../src/list/list_address";
import { pageText } from "../src/list/list_pages";
import { ListWindow, ROWS_A_PAGE, type ListColumn, type Order, type Range } from "../src/list/list_window";
import { hrefWith } from "../src/route";

interface Row { id: number; name: string | null; size: number }

const COLUMNS: ListColumn<Row>[] = [
  { title: "Name", value: (row) => row.name },
  { title: "Size", unit: "bytes", value: (row) => row.size },
  { title: "Actions" },
];
const ALL: Row[] = Array.from({ length: 1234 }, (_, id) => ({ id, name: `file ${id}`, size: (id * 7919) % 1000 }));
const UP: Order = { column: "size", down: false };
const begin: Range = { from: "begin" };

// As the API hands it out: part by part, in an order of its own.
function windowOf(wishes: { search?: string; order?: Order; range?: Range } = {}, all = ALL): ListWindow<Row> {
  const window = new ListWindow<Row>({ columns: COLUMNS, rowKey: (row) => row.id, search: "", order: UP, range: begin, ...wishes });
  for (let at = 0; at < all.length; at += 100) window.add(all.slice(at, at + 100));
  return window;
}

// From the first page to the last by the step after, as the reader does.
function walk(order: Order, direction: "after" | "before"): Row[] {
  const walked: Row[] = [];
  for (let range: Range = { from: direction === "after" ? "begin" : "end" }; ;) {
    const window = windowOf({ order, range });
    const { rows } = window.view();
    if (direction === "after") walked.push(...rows);
    else walked.unshift(...rows);
    const edge = direction === "after" ? rows.at(-1) : rows[0];
    if (!edge) return walked;
    range = { from: direction, place: window.placeOf(edge) };
  }
}

describe("a window on a list", () => {
  test.each([UP, { column: "size", down: true }, { column: "name", down: false }])("shows every row once, forwards and back: %j", (order) => {
    const forwards = walk(order, "after");
    expect(new Set(forwards.map(({ id }) => id)).size).toBe(ALL.length);
    expect(walk(order, "before")).toEqual(forwards);
    const sorted = forwards.map((row) => (order.column === "size" ? row.size : row.id));
    expect(sorted).toEqual([...sorted].sort((a, b) => (order.down ? b - a : a - b)));
  });
  test("holds one page of rows, however many there are", () => {
    const window = windowOf({ order: { column: "name", down: true } });
    expect(window.view().rows.length).toBe(ROWS_A_PAGE);
  });
  test("knows where it stands", () => {
    const first = windowOf();
    const last = first.view().rows.at(-1);
    const second = windowOf({ range: { from: "after", place: first.placeOf(last ?? ALL[0] as Row) } }).view();
    expect([second.before, second.matching, second.read]).toEqual([50, 1234, 1234]);
    expect(pageText(second, false)).toBe("51 to 100 of 1,234");
    expect(windowOf({ range: { from: "end" } }).view().before).toBe(1184);
  });
  test("finds rows that have every word, in whichever column and case", () => {
    const found = windowOf({ search: "FILE 77" }).view();
    expect(found.rows.every(({ name, size }) => `${name} ${size}`.includes("77"))).toBe(true);
    expect(found.matching).toBeGreaterThan(10);
    expect(pageText(windowOf({ search: "nowhere" }).view(), false)).toBe("0 of 0 found in 1,234");
  });
  test("sorts names as people do, and what is not known last", () => {
    const names = ["10.0.0.10", null, "10.0.0.9"].map((name, id) => ({ id, name, size: 0 }));
    expect(windowOf({ order: { column: "name", down: false } }, names).view().rows.map(({ name }) => name))
      .toEqual(["10.0.0.9", "10.0.0.10", null]);
  });
});

describe("a list in the address", () => {
  const at = { pathname: "/clients", search: "?client=7" };
  const queryOf = (href: string) => new URLSearchParams(href.split("?")[1]);
  test("comes back as it was", () => {
    const range: Range = { from: "after", place: { value: "a:b,\"c\" é", key: "00ff" } };
    const href = [searchParameters("layouts", "two words"), orderParameters("layouts", { column: "size", down: true }, "name"),
      rangeParameters("layouts", range)].reduce((href, changes) =>
      hrefWith(changes, { pathname: "/clients", search: `?${queryOf(href)}` }), "/clients?client=7");
    expect(queryOf(href).get("client")).toBe("7");
    expect(readAddress(queryOf(href), "layouts", COLUMNS, "name")).toEqual({ search: "two words", order: { column: "size", down: true }, range });
    expect(readAddress(queryOf(href), "", COLUMNS, "name").search).toBe("");
  });
  test("another search or order begins at the first page", () => {
    const deep = { ...at, search: "?page=end&client=7" };
    expect(hrefWith(searchParameters("", "x"), deep)).toBe("/clients?client=7&search=x");
    expect(hrefWith(orderParameters("", { column: "name", down: false }, "name"), deep)).toBe("/clients?client=7");
  });
  test.each(["after:", "after:[1]", "after:[{},\"k\"]", "before:null", "sideways:[1,\"k\"]", "after:[1,2]", null])(
    "what nobody can have got is the beginning: %s", (text) => expect(rangeOf(text)).toEqual({ from: "begin" }));
  test("a column that is not there, or cannot be sorted, is the standard one", () => {
    for (const sort of ["nothing", "-actions"]) {
      expect(readAddress(new URLSearchParams({ sort }), "", COLUMNS, "-size").order).toEqual({ column: "size", down: true });
    }
    expect(rangeText({ from: "begin" })).toBeNull();
  });
});

describe("a list as CSV", () => {
  async function* pages() {
    yield [{ id: 1, name: 'a "quoted", name', size: -1 }, { id: 2, name: "=HYPERLINK(1)", size: 2048 }];
    yield [{ id: 3, name: null, size: 3 }, { id: 4, name: "other", size: 4 }];
  }
  test("has a head with units, escapes, and no formula", async () => {
    expect(await (await csvFile(COLUMNS, "", pages())).text()).toBe(
      'Name,Size (bytes)\r\n"a ""quoted"", name",-1\r\n\'=HYPERLINK(1),2048\r\n,3\r\nother,4\r\n');
  });
  test("has what the search finds", async () => {
    expect(await (await csvFile(COLUMNS, "other", pages())).text()).toBe("Name,Size (bytes)\r\nother,4\r\n");
  });
});
