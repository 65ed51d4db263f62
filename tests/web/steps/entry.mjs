// SPDX-License-Identifier: Apache-2.0
import { firstPaint, lookAt } from "../checks.mjs";

export const PASSWORD = "correct horse battery";

export async function firstStart({ page, cluster, output }) {
  await page.goto("/");
  await page.getByRole("heading", { name: "First start" }).waitFor();
  await lookAt(page, "first-start", output);
  const command = await page.locator("code", { hasText: "cat " }).textContent();
  const token = await cluster.ask("read", { path: command.replace("cat ", "") });
  await page.getByLabel("One-time token").fill("wrong");
  await page.getByLabel("New password", { exact: true }).fill(PASSWORD);
  await page.getByLabel("Repeat new password").fill(`${PASSWORD}!`);
  await page.getByText("The passwords do not match.").waitFor();
  await page.getByLabel("Repeat new password").fill(PASSWORD);
  await page.getByRole("button", { name: "Set password" }).click();
  await page.getByText("The one-time token is wrong.").waitFor();
  await page.getByLabel("One-time token").fill(token);
  await page.getByRole("button", { name: "Set password" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}

export async function loadsFast({ page }) {
  return `first paint after ${Math.round(await firstPaint(page))} ms`;
}

export async function logIn(page, user, password) {
  await page.getByLabel("User").fill(user);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
}
