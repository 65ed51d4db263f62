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
  await page.getByLabel("New password again").fill(`${PASSWORD}!`);
  await page.getByText("The two differ.").waitFor();
  await page.getByLabel("New password again").fill(PASSWORD);
  await page.getByRole("button", { name: "Set the password" }).click();
  await page.getByRole("alert").first().waitFor();
  await page.getByLabel("One-time token").fill(token);
  await page.getByRole("button", { name: "Set the password" }).click();
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
