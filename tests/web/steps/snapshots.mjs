// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { lookAt } from "../checks.mjs";

export async function takeSnapshot({ page, output }) {
  await page.goto("/snapshots");
  await page.getByText("There is no snapshot.").waitFor();
  await page.getByRole("button", { name: "New snapshot" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("a/b");
  await dialog.getByText("No / and no control characters.").waitFor();
  await dialog.getByLabel("Name").fill("before");
  await lookAt(page, "new-snapshot", output);
  await dialog.getByRole("button", { name: "Take it" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("row", { name: "before" }).getByText("ready").waitFor();
  await lookAt(page, "snapshots", output);
}

export async function pinSnapshot({ page, output }) {
  await page.goto("/snapshots");
  await page.getByRole("button", { name: "Pin before", exact: true }).click();
  const row = page.getByRole("row", { name: "before" });
  await row.getByText("pinned", { exact: true }).waitFor();
  await lookAt(page, "snapshot-pinned", output);
  assert.equal(await page.getByRole("button", { name: "Remove before" }).count(), 0);
  await page.getByRole("button", { name: "Unpin before" }).click();
  await page.getByRole("button", { name: "Remove before" }).waitFor();
}

async function setDaily(page, count) {
  await page.getByRole("button", { name: "Change schedule" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Daily").fill("4001");
  await dialog.getByText("Enter a number from 0 to 4000.").waitFor();
  await dialog.getByLabel("Daily").fill(count);
  await dialog.getByRole("button", { name: "Change", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
}

export async function scheduleSnapshots({ page, output }) {
  await page.goto("/snapshots");
  await page.getByText("No snapshots are scheduled.").waitFor();
  await setDaily(page, "7");
  await page.getByText("7 daily").waitFor();
  const name = await page.getByText(/^daily-\d{4}-\d\d-\d\dT\d\d-\d\dZ$/).first().innerText();
  await lookAt(page, "snapshot-schedule", output);
  await setDaily(page, "0");
  await page.getByText("No snapshots are scheduled.").waitFor();
  await page.getByRole("button", { name: `Remove ${name}` }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Type the snapshot's name to confirm").fill(name);
  await dialog.getByRole("button", { name: "Remove", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: `Remove ${name}` }).waitFor({ state: "detached" });
}

export async function removeSnapshot({ page }) {
  await page.goto("/snapshots");
  await page.getByRole("button", { name: "Remove before" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Type the snapshot's name to confirm").fill("before");
  await dialog.getByRole("button", { name: "Remove", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByText("There is no snapshot.").waitFor();
}
