// SPDX-License-Identifier: Apache-2.0
import { renderToString } from "preact-render-to-string";
import { expect, test, vi } from "vitest";
import type { Export, Role } from "../src/api/generated";
import { ExportTable } from "../src/pages/exports/export_table";
import { permits, SessionContext } from "../src/session";

vi.stubGlobal("location", { pathname: "/exports", search: "" });

const EXPORT: Export = { id: 1, path: "/p", read_only: false, root_squash: true, all_squash: false, anonuid: 65534, anongid: 65534,
  insecure: false, manage_gids: false, clients: [], source: "store", directory_exists: false };

function shownTo(role: Role): string {
  const session = { user: "u", role, method: "password" as const, csrf_token: null, expires: null };
  return renderToString(
    <SessionContext.Provider value={{ session, logOut: () => Promise.resolve() }}>
      <ExportTable exports={[EXPORT]} empty="none" onEdit={() => undefined} onRemove={() => undefined} />
    </SessionContext.Provider>);
}

test("a role may do what the contract says", () => {
  expect(permits("viewer", "GET /bricks")).toBe(true);
  expect(permits("viewer", "DELETE /layouts/{id}")).toBe(false);
  expect(permits("operator", "DELETE /layouts/{id}")).toBe(true);
  expect(permits("operator", "POST /exports")).toBe(false);
  expect(permits("admin", "POST /exports")).toBe(true);
});

test("what a viewer may not do is not offered", () => {
  expect(shownTo("viewer")).not.toMatch(/Edit|Remove/);
  expect(shownTo("admin")).toContain("Remove /p");
});

test("an export that everybody may mount, and one without directory, stand out", () => {
  expect(shownTo("viewer")).toContain("everybody");
  expect(shownTo("viewer")).toContain("no such directory");
});
