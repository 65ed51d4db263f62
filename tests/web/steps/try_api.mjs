// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { lookAt } from "../checks.mjs";

// An operation is tried on the page that is made from the description, and a refusal is shown as it is.
export async function tryOperations({ page, output }) {
  await page.goto("/api-operations");
  await page.getByRole("button", { name: "Send" }).click();
  const answer = page.getByLabel("Answer", { exact: true });
  await answer.waitFor();
  assert.equal(typeof JSON.parse(await answer.textContent()).status, "string");
  await lookAt(page, "rest-api", output);
  await page.getByLabel("Operation").selectOption("postExport");
  await page.getByLabel("Body").fill('{"path": "no-slash"}');
  await page.getByRole("button", { name: "Send" }).click();
  await answer.getByText("/api/v1/problems/invalid").waitFor();
}
