// SPDX-License-Identifier: Apache-2.0
// The console's pages, and as much of the API as its lists ask for: 1,000 clients that hold 100,000 layouts. A real server
// with so many is `make bench-server`'s.
import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";

export const CLIENTS = 1000;
export const LAYOUTS = 100_000;
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

const hex = (number) => number.toString(16).padStart(16, "0");

function client(number) {
  return {
    id: hex(number + 1), name: `node${number}-${hex(number).slice(-6)}`, host: `node${number}`, mount_point: "/mnt/data", owner: `node${number}`,
    uid: 0, confirmed: true, lease_seconds_left: 80, opens: number, locks: 0, delegations: 0, layouts: LAYOUTS / CLIENTS, grants: LAYOUTS / CLIENTS,
    bytes: number << 21, writable_bytes: 0, revoked_states: 0, bricks: [],
    sessions: [{ id: hex(number).repeat(2), slots: 64, peers: ["192.0.2.1:700"], transport: "tcp", callbacks: "up" }],
  };
}

function layout(number) {
  const holder = Math.floor(number / (LAYOUTS / CLIENTS));
  return {
    id: `${hex(holder + 1)}-${hex(number + 1)}`, client: hex(holder + 1), client_name: client(holder).name, inode: number + 1,
    path: `/runs/file-${(number * 7919) % LAYOUTS}.bin`, export: 1, iomode: number % 2 ? "read" : "read-write", grants: 1, bytes: (number + 1) * 4096,
    writable_bytes: 0, granted: "2026-01-01T00:00:00Z", age_seconds: number % 3600, transport: "rdma-verbs", state: "held",
  };
}

// As the server does it: no more than `limit`, and a cursor that says nothing.
function page(total, item, query, first = 0) {
  const cursor = query.get("cursor");
  const from = cursor ? Number(Buffer.from(cursor, "base64url").toString().slice(5)) : first;
  const to = Math.min(total, from + Number(query.get("limit") ?? 100));
  const items = Array.from({ length: to - from }, (_, index) => item(from + index));
  return { items, next_cursor: to < total ? Buffer.from(`place${to}`).toString("base64url") : null };
}

function answer(path, query) {
  switch (path) {
    case "/setup": return { needed: false };
    case "/session": return { user: "admin", role: "admin", method: "password", csrf_token: "t", expires: null };
    case "/version": return { version: "0", host: "large" };
    case "/alerts": return { items: [], next_cursor: null };
    case "/health": return { status: "ok", checks: [], uptime_seconds: 1, start_count: 1, grace_seconds_left: 0 };
    case "/clients": return page(CLIENTS, client, query);
    case "/layouts": {
      const of = query.get("client");
      if (of === null) return page(LAYOUTS, layout, query);
      const first = (Number.parseInt(of, 16) - 1) * (LAYOUTS / CLIENTS);
      return page(first + LAYOUTS / CLIENTS, layout, query, first);
    }
    default: return path.startsWith("/clients/") ? client(Number.parseInt(path.slice(9), 16) - 1) : undefined;
  }
}

function serve(pages, request, response) {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  if (pathname.startsWith("/api/v1")) {
    const value = answer(pathname.slice(7), searchParams);
    response.writeHead(value ? 200 : 404, { "Content-Type": "application/json" });
    response.end(JSON.stringify(value ?? { title: "Not found", status: 404 }));
    return;
  }
  const asked = join(pages, pathname);
  const file = extname(pathname) && existsSync(asked) ? asked : join(pages, "index.html");
  response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream",
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'" });
  createReadStream(file).pipe(response);
}

export async function largeServer(pages) {
  const server = createServer((request, response) => serve(pages, request, response));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
