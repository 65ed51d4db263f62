// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { lookAt, within } from "../checks.mjs";

// A minute as the rule says, and patience with a busy machine.
const FIRES_MS = 150_000;
const SOON_MS = 60_000;
const SUMMARY = "The brick rack 4 is unreachable";
const COMMENT = "its host is being repaired";

// The second device dies: its alert is seen everywhere, acknowledged, and over when the device is back.
export async function alertFires({ page, cluster, output }) {
  await cluster.ask("stop_brick", { name: "brick2" });
  await page.goto("/alerts");
  const row = page.getByRole("table", { name: "Alerts" }).getByRole("row").filter({ hasText: SUMMARY });
  await row.getByText("pending", { exact: true }).waitFor({ timeout: SOON_MS });
  assert.equal(await row.getByRole("button").count(), 0, "what is pending cannot be acknowledged");
  const acknowledge = row.getByRole("button", { name: "Acknowledge" });
  await acknowledge.waitFor({ timeout: FIRES_MS });
  const count = page.locator(".alert-count");
  await count.getByText(/^\d+ alerts?$/).waitFor();
  await lookAt(page, "alerts", output);
  await page.goto("/");
  await page.getByRole("region", { name: "Alerts" }).getByText(SUMMARY).waitFor();
  await lookAt(page, "overview-alerts", output);
  await count.getByRole("link").click();
  await acknowledge.waitFor();

  // By keyboard alone.
  await acknowledge.focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Comment").waitFor();
  await page.keyboard.type(COMMENT);
  await lookAt(page, "acknowledge-alert", output);
  await dialog.getByLabel("Comment").focus();
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  await row.getByText("acknowledged", { exact: true }).waitFor();
  await row.getByText(COMMENT).waitFor();
  const others = await page.getByRole("button", { name: /^Acknowledge:/ }).count();
  await within(SOON_MS, "it is no longer counted", async () => Number.parseInt(await count.textContent() || "0", 10) === others);
  await lookAt(page, "alerts-acknowledged", output);

  await cluster.ask("start_brick", { name: "brick2" });
  await row.getByText("resolved", { exact: true }).waitFor({ timeout: SOON_MS });
  assert.equal(await row.getByRole("button").count(), 0, "what is over cannot be acknowledged");
}

// Where nobody listens: the page says so, and never shows the secret.
export async function webhookIsSet({ page, output }) {
  const secret = "a secret of this test";
  await page.goto("/settings/webhook");
  await page.getByText("No webhook is set.").waitFor();
  await page.getByLabel("URL").fill("ftp://127.0.0.1/in");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("must begin with https:// or http://").first().waitFor();
  await page.getByLabel("URL").fill("http://127.0.0.1:1/in");
  await page.getByLabel("Secret").fill(secret);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("A secret is set but not shown").waitFor();
  await page.getByRole("button", { name: "Send test" }).click();
  await page.getByText("cannot connect").first().waitFor();
  assert.equal(await page.getByLabel("Secret").inputValue(), "");
  assert.equal((await page.content()).includes(secret), false, "the secret is shown");
  await lookAt(page, "settings-webhook", output);
  await page.getByRole("button", { name: "Remove webhook" }).click();
  await page.getByText("No webhook is set.").first().waitFor();
}
