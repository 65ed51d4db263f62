// SPDX-License-Identifier: Apache-2.0
// Makes TypeScript types from the server's own description, so that a page that misreads the API does not compile.
// usage: node api_types.mjs OPENAPI_JSON OUTPUT_TS
import { readFileSync, writeFileSync } from "node:fs";

const METHODS = ["get", "put", "post", "patch", "delete"];

const last = (reference) => reference.split("/").pop();
const quoted = (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name));

function typeOf(schema) {
  if (schema.$ref) return last(schema.$ref);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type })).join(" | ");
  switch (schema.type) {
    case "object": return objectType(schema);
    case "array": return `(${typeOf(schema.items ?? {})})[]`;
    case "integer":
    case "number": return "number";
    case "string": return "string";
    case "boolean": return "boolean";
    case "null": return "null";
    default: return "unknown";
  }
}

function objectType(schema) {
  const required = new Set(schema.required ?? []);
  const members = Object.entries(schema.properties ?? {}).map(
    ([name, member]) => `${quoted(name)}${required.has(name) ? "" : "?"}: ${typeOf(member)}`);
  if (typeof schema.additionalProperties === "object") {
    members.push(`[name: string]: ${typeOf(schema.additionalProperties)}`);
  }
  return `{ ${members.join("; ")} }`;
}

function bodyType(content) {
  const schema = content?.["application/json"]?.schema;
  return schema ? typeOf(schema) : "void";
}

function parameters(operation, place) {
  const members = (operation.parameters ?? []).filter((parameter) => parameter.in === place).map(
    (parameter) => `${quoted(parameter.name)}${place === "path" ? "" : "?"}: ${typeOf(parameter.schema)}`);
  return members.length ? `{ ${members.join("; ")} }` : "undefined";
}

function operationType(operation) {
  const answers = Object.entries(operation.responses).filter(([status]) => status.startsWith("2"));
  const answer = [...new Set(answers.map(([, response]) => bodyType(response.content)))].join(" | ");
  return `{ path: ${parameters(operation, "path")}; query: ${parameters(operation, "query")}; ` +
    `body: ${bodyType(operation.requestBody?.content)}; answer: ${answer}; role: ${JSON.stringify(operation["x-role"])} }`;
}

function generate(document) {
  const lines = ["// Made from openapi.json by generate/api_types.mjs: not edited, not committed.", ""];
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    lines.push(`export type ${name} = ${typeOf(schema)};`);
  }
  lines.push("", "export interface Operations {");
  const roles = [];
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const method of METHODS.filter((name) => operations[name])) {
      const name = JSON.stringify(`${method.toUpperCase()} ${path}`);
      lines.push(`  ${name}: ${operationType(operations[method])};`);
      roles.push(`  ${name}: ${JSON.stringify(operations[method]["x-role"])},`);
    }
  }
  lines.push("}", "", "// The least role an operation needs.", "export const roleOf = {", ...roles, "} as const;", "");
  return lines.join("\n");
}

const [input, output] = process.argv.slice(2);
if (!output) {
  console.error("usage: node api_types.mjs OPENAPI_JSON OUTPUT_TS");
  process.exit(2);
}
writeFileSync(output, generate(JSON.parse(readFileSync(input, "utf8"))));
