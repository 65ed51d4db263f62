// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { lookAt } from "../checks.mjs";

export async function setLimits({ page, output }) {
  await page.goto("/quotas");
  await page.getByText("Quotas are off: nothing is counted.").waitFor();
  await lookAt(page, "empty-quotas", output);
  await page.getByRole("button", { name: "New limits" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name or number").fill("root");
  await dialog.getByLabel("Space, soft").fill("2G");
  await dialog.getByLabel("Space, hard").fill("1G");
  await dialog.getByText("It is above the hard limit.").waitFor();
  await lookAt(page, "new-limits", output);
  await dialog.getByLabel("Space, hard").fill("4G");
  await dialog.getByRole("button", { name: "Set limits" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("row", { name: "root user" }).getByText("of 4.00 GiB, soft 2.00 GiB").waitFor();
  await page.getByText("on", { exact: true }).waitFor();
}

export async function editLimits({ page, output }) {
  await page.getByRole("button", { name: "Edit user root" }).click();
  const dialog = page.getByRole("dialog");
  assert.equal(await dialog.getByLabel("Space, hard").inputValue(), "4G");
  await dialog.getByLabel("Space, soft").fill("4K");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("row", { name: "root user" }).getByText("over soft limit").waitFor();
  await lookAt(page, "quotas", output);
}

export async function everybodysLimits({ page, output }) {
  await page.getByRole("button", { name: "Each user…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Inodes, hard").fill("50K");
  await lookAt(page, "default-limits", output);
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByText("inodes hard 50K").waitFor();
  await page.getByRole("button", { name: "Count again…" }).click();
  await dialog.getByRole("button", { name: "Count again" }).click();
  await dialog.waitFor({ state: "detached" });
}

export async function removeLimits({ page }) {
  await page.getByRole("button", { name: "Remove user root" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Type the user's name to confirm").fill("root");
  await dialog.getByRole("button", { name: "Remove", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("row", { name: "root user" }).getByText("no limit").waitFor();
}
