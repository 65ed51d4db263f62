// SPDX-License-Identifier: Apache-2.0
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

export async function removeSnapshot({ page }) {
  await page.goto("/snapshots");
  await page.getByRole("button", { name: "Remove before" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Type the snapshot's name to confirm").fill("before");
  await dialog.getByRole("button", { name: "Remove", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByText("There is no snapshot.").waitFor();
}
