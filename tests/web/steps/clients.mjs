// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { lookAt } from "../checks.mjs";

export async function seeClient({ page, cluster, output }) {
  await cluster.ask("write", { name: "held.bin", mebibytes: 2 });
  await page.goto("/layouts");
  await page.getByRole("table", { name: "Layouts" }).getByText("held.bin").waitFor();
  await lookAt(page, "layouts", output);
  await page.goto("/clients");
  const client = page.getByRole("table", { name: "Clients" }).getByRole("button", { expanded: false }).first();
  await client.click();
  await page.getByRole("table", { name: "Sessions" }).waitFor();
  await page.getByRole("table", { name: "Connections to devices" }).getByText("iwarp").waitFor();
  await page.getByRole("table", { name: "Layouts" }).getByText("held.bin").waitFor();
  await page.getByRole("heading", { name: /^History of / }).waitFor();
  await page.getByText("Written, iWARP").waitFor();
  await lookAt(page, "clients", output);
}

async function clientIds(page) {
  return page.evaluate(async () => (await (await fetch("/api/v1/clients")).json()).items.map(({ id }) => id));
}

export async function expelClient({ page, cluster, output }) {
  const [before] = await clientIds(page);
  await page.getByRole("button", { name: /^Expel / }).first().click();
  const dialog = page.getByRole("dialog");
  const button = dialog.getByRole("button", { name: "Expel", exact: true });
  assert.equal(await button.isEnabled(), false, "expelling was possible before the name was typed");
  await lookAt(page, "expel-client", output);
  const name = await dialog.locator("code.wrap").textContent();
  await dialog.getByLabel("Type the client's name to confirm").fill(name);
  await button.click();
  await dialog.waitFor({ state: "detached" });
  assert.equal((await clientIds(page)).includes(before), false, "the client is still there");
  // It may come back as a new one, and does: the mount works on.
  await cluster.ask("write", { name: "after.bin", mebibytes: 1 });
  const [after] = await clientIds(page);
  assert.notEqual(after, before);
}
