// SPDX-License-Identifier: Apache-2.0
// The operations as the server's own description has them: what a page to try them is made of.
export interface TriedParameter {
  name: string;
  in: "path" | "query";
  required: boolean;
  description: string;
  example: string;
}

export interface TriedOperation {
  id: string;
  method: string;
  path: string;
  summary: string;
  description: string;
  role: string;
  parameters: TriedParameter[];
  // What a body looks like; undefined: none is taken.
  body: string | undefined;
}

interface Described {
  operationId: string;
  summary: string;
  description?: string;
  "x-role": string;
  parameters?: { name: string; in: string; required?: boolean; description?: string; example?: unknown }[];
  requestBody?: { content: Record<string, { example?: unknown }> };
}

// A stream never ends: it is not tried here.
const LEFT_OUT = ["streamEvents"];

export function operationsOf(document: unknown): TriedOperation[] {
  const { paths } = document as { paths: Record<string, Record<string, Described>> };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).filter(([, described]) => !LEFT_OUT.includes(described.operationId)).map(([method, described]) => ({
      id: described.operationId,
      method: method.toUpperCase(),
      path,
      summary: described.summary,
      description: described.description ?? "",
      role: described["x-role"],
      parameters: (described.parameters ?? []).filter((each) => each.in === "path" || each.in === "query").map((each) => ({
        name: each.name, in: each.in as "path" | "query", required: each.required ?? false,
        description: each.description ?? "", example: each.example === undefined ? "" : String(each.example),
      })),
      body: described.requestBody && JSON.stringify(described.requestBody.content["application/json"]?.example ?? {}, null, 2),
    })));
}

// Path and query of a request with these values; undefined: a part of the path is missing.
export function requestPath(operation: Pick<TriedOperation, "path" | "parameters">, values: Record<string, string>): string | undefined {
  const missing = operation.parameters.some((each) => each.required && !values[each.name]);
  if (missing) return undefined;
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
  const query = new URLSearchParams();
  for (const { name, in: where } of operation.parameters) {
    const value = values[name];
    if (where === "query" && value) query.set(name, value);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

// A body as people read it.
export function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
