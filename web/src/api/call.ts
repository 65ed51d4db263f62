// SPDX-License-Identifier: Apache-2.0
import type { Operations } from "./generated";
import { problemFrom, unreachable } from "./problem";

export type OperationName = keyof Operations;
export type Answer<Name extends OperationName> = Operations[Name]["answer"];

export interface CallOptions<Name extends OperationName> {
  path?: Operations[Name]["path"];
  query?: Operations[Name]["query"];
  body?: Operations[Name]["body"];
  ifMatch?: string;
  signal?: AbortSignal;
}

export interface Reply<T> {
  value: T;
  etag: string | null;
  status: number;
}

const ROOT = "/api/v1";
const LOGIN_OPERATIONS: OperationName[] = ["POST /session", "POST /setup", "GET /session"];

let csrfToken: string | null = null;
let onLoggedOut: () => void = () => undefined;

export function setCsrfToken(token: string | null): void {
  csrfToken = token;
}

// Called when the server no longer knows the session.
export function whenLoggedOut(action: () => void): void {
  onLoggedOut = action;
}

export function urlOf(name: OperationName, path: object | undefined, query: object | undefined): string {
  const filled = name.slice(name.indexOf(" ") + 1).replace(/\{(\w+)\}/g, (_, key: string) => {
    const value = (path as Record<string, unknown> | undefined)?.[key];
    if (value === undefined) throw new Error(`${name} needs ${key}`);
    return encodeURIComponent(String(value));
  });
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== "") search.set(key, String(value));
  }
  const text = search.toString();
  return ROOT + filled + (text ? `?${text}` : "");
}

// One request to the API. Throws Problem; an aborted one throws the DOMException of fetch.
export async function callFor<Name extends OperationName>(
  name: Name, options: CallOptions<Name> = {}): Promise<Reply<Answer<Name>>> {
  const method = name.slice(0, name.indexOf(" "));
  const headers: Record<string, string> = { Accept: "application/json" };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (options.ifMatch !== undefined) headers["If-Match"] = options.ifMatch;
  if (method !== "GET" && csrfToken) headers["X-CSRF-Token"] = csrfToken;
  let response: Response;
  try {
    response = await fetch(urlOf(name, options.path, options.query), {
      method, headers, signal: options.signal, credentials: "same-origin", cache: "no-store",
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw unreachable();
  }
  if (!response.ok) {
    const problem = await problemFrom(response);
    if (problem.status === 401 && !LOGIN_OPERATIONS.includes(name)) onLoggedOut();
    throw problem;
  }
  const value = response.status === 204 ? undefined : await response.json();
  return { value: value as Answer<Name>, etag: response.headers.get("ETag"), status: response.status };
}

// Any request to the API, as somebody wrote it; refusals are answers here. Throws Problem when nobody answers.
export async function rawCall(method: string, path: string, body: string | undefined): Promise<{ status: number; text: string }> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET") headers["If-Match"] = "*";
  if (method !== "GET" && csrfToken) headers["X-CSRF-Token"] = csrfToken;
  try {
    const response = await fetch(ROOT + path, { method, headers, credentials: "same-origin", cache: "no-store", body });
    return { status: response.status, text: await response.text() };
  } catch {
    throw unreachable();
  }
}

export async function call<Name extends OperationName>(
  name: Name, options: CallOptions<Name> = {}): Promise<Answer<Name>> {
  return (await callFor(name, options)).value;
}
