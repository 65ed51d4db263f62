// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { call, callFor, setCsrfToken, urlOf, whenLoggedOut } from "../src/api/call";
import { everyPage } from "../src/api/every_page";
import { Problem } from "../src/api/problem";

const fetched = vi.fn();

function answer(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(body === undefined ? null : JSON.stringify(body), { status, headers });
}

beforeEach(() => {
  fetched.mockReset();
  vi.stubGlobal("fetch", fetched);
  setCsrfToken(null);
  whenLoggedOut(() => undefined);
});
afterEach(() => vi.unstubAllGlobals());

describe("addresses", () => {
  test("fill in the path and leave out what is not asked for", () => {
    expect(urlOf("GET /bricks/{brick}/blocks", { brick: "a b/c" }, { limit: 5, cursor: undefined })).toBe(
      "/api/v1/bricks/a%20b%2Fc/blocks?limit=5");
    expect(urlOf("GET /events", undefined, { level: "info", name: "" })).toBe("/api/v1/events?level=info");
  });
  test("without a needed part are a bug", () => expect(() => urlOf("GET /jobs/{id}", {}, undefined)).toThrow("id"));
});

describe("a request", () => {
  test("that changes something carries the CSRF token, one that reads does not", async () => {
    setCsrfToken("secret");
    fetched.mockImplementation(() => Promise.resolve(answer(200, { layouts: 1, grants: 2 })));
    await call("DELETE /layouts/{id}", { path: { id: "x" } });
    await call("GET /health");
    expect(fetched.mock.calls[0]?.[1].headers["X-CSRF-Token"]).toBe("secret");
    expect(fetched.mock.calls[1]?.[1].headers["X-CSRF-Token"]).toBeUndefined();
  });

  test("carries If-Match and gives the ETag", async () => {
    fetched.mockResolvedValue(answer(200, {}, { ETag: '"2"' }));
    const reply = await callFor("PATCH /configuration", { body: {}, ifMatch: '"1"' });
    expect(fetched.mock.calls[0]?.[1].headers["If-Match"]).toBe('"1"');
    expect(reply.etag).toBe('"2"');
  });

  test("that is refused throws the server's problem", async () => {
    fetched.mockResolvedValue(answer(422, { type: "/api/v1/problems/invalid", title: "Not valid", status: 422,
      errors: [{ pointer: "/clients/0", detail: "no network" }] }));
    const problem = await call("POST /exports", { body: { path: "x" } }).catch((error: unknown) => error as Problem);
    expect(problem).toBeInstanceOf(Problem);
    expect([(problem as Problem).kind, (problem as Problem).errorOf("clients")]).toEqual(["invalid", "no network"]);
  });

  test("that something in between refuses without JSON still says its status", async () => {
    fetched.mockResolvedValue(new Response("<html>", { status: 502 }));
    await expect(call("GET /health")).rejects.toMatchObject({ details: { status: 502, title: "The server answered 502" } });
  });

  test("that reaches nobody says so", async () => {
    fetched.mockRejectedValue(new TypeError("failed to fetch"));
    await expect(call("GET /health")).rejects.toMatchObject({ details: { type: "unreachable", status: 0 } });
  });

  test("of an unknown session logs out, a failed login does not", async () => {
    const out = vi.fn();
    whenLoggedOut(out);
    fetched.mockImplementation(() => Promise.resolve(answer(401, { type: "x/not-logged-in", title: "Log in", status: 401 })));
    await call("POST /session", { body: { user: "a", password: "b" } }).catch(() => undefined);
    expect(out).not.toHaveBeenCalled();
    await call("GET /bricks").catch(() => undefined);
    expect(out).toHaveBeenCalledOnce();
  });
});

describe("a list", () => {
  test("is read page by page", async () => {
    fetched.mockImplementation((url: string) => Promise.resolve(url.includes("cursor=two")
      ? answer(200, { items: [3], next_cursor: null }) : answer(200, { items: [1, 2], next_cursor: "two" })));
    expect(await everyPage("GET /jobs")).toEqual({ items: [1, 2, 3] });
  });
  test("without end is cut", async () => {
    fetched.mockImplementation(() => Promise.resolve(answer(200, { items: [1], next_cursor: "more" })));
    expect((await everyPage("GET /jobs")).items.length).toBe(20);
  });
});
