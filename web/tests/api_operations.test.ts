// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { operationsOf, requestPath } from "../src/pages/try_api/api_operations";

const OPERATIONS = operationsOf(JSON.parse(readFileSync("../server/console/openapi.json", "utf8")));

test("every operation of the description can be tried, but the stream", () => {
  expect(OPERATIONS.length).toBeGreaterThan(45);
  expect(OPERATIONS.map(({ id }) => id)).not.toContain("streamEvents");
  for (const operation of OPERATIONS) {
    expect(operation.description, operation.id).not.toBe("");
    const values = Object.fromEntries(operation.parameters.map(({ name }) => [name, "x y"]));
    expect(requestPath(operation, values), operation.id).not.toMatch(/[{} ]/);
    if (operation.body !== undefined) expect(JSON.parse(operation.body)).toBeTypeOf("object");
  }
});

test("a request is made when nothing that is needed is missing", () => {
  const blocks = OPERATIONS.find(({ id }) => id === "getBlocks");
  if (!blocks) throw new Error("no getBlocks");
  expect(requestPath(blocks, {})).toBeUndefined();
  expect(requestPath(blocks, { brick: "new-1" })).toBe("/bricks/new-1/blocks");
  expect(requestPath(blocks, { brick: "new-1", limit: "5" })).toBe("/bricks/new-1/blocks?limit=5");
});
