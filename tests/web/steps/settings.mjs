// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { lookAt } from "../checks.mjs";

export const VIEWER = { user: "watcher", password: "only looking around" };

export async function makeViewer({ page, output }) {
  await page.goto("/settings");
  await page.getByRole("heading", { name: "Change your password" }).waitFor();
  await lookAt(page, "settings", output);
  await page.getByRole("link", { name: "Users" }).click();
  await page.getByRole("button", { name: "New user" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill(VIEWER.user);
  await dialog.getByLabel("Password").fill(VIEWER.password);
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("row", { name: VIEWER.user }).waitFor();
  const admin = await page.getByRole("row", { name: "admin" }).first().textContent();
  assert.equal(admin.includes("never"), false, `who has set the first password has logged in: ${admin}`);
  await lookAt(page, "settings-users", output);
}

export async function makeToken({ page, output }) {
  await page.getByRole("link", { name: "Tokens" }).click();
  await page.getByRole("button", { name: "New token" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("watchdog");
  await dialog.getByRole("button", { name: "Create" }).click();
  const secret = await page.getByLabel("Token", { exact: true }).textContent();
  assert.ok(secret.length >= 20, "the secret is shown");
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("row", { name: "watchdog" }).waitFor();
  assert.equal((await page.content()).includes(secret), false, "the secret is shown once only");
  await lookAt(page, "settings-tokens", output);
}

export async function changeLogLevel({ page, output }) {
  await page.getByRole("link", { name: "Server" }).click();
  await page.getByLabel("Log level").selectOption("debug");
  await page.getByRole("button", { name: "Change" }).click();
  await page.getByText('Now "debug".').waitFor();
  await lookAt(page, "settings-server", output);
}

export async function auditTells({ page, output }) {
  await page.getByRole("link", { name: "Audit" }).click();
  const table = page.getByRole("table", { name: "Audit" });
  for (const words of ["added the brick at unix:", "created the export /", "revoked the layout of /idle.bin from", "expelled the client",
    `created the user ${VIEWER.user}, role viewer`, "set log_level to debug"]) {
    await table.getByText(words).first().waitFor();
  }
  assert.equal((await page.content()).includes(VIEWER.password), false, "no password stands in the audit log");
  await lookAt(page, "settings-audit", output);
}
