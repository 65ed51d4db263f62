// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { lookAt, within } from "../checks.mjs";

export async function mountAndWork({ cluster }) {
  await cluster.ask("mount");
  await cluster.ask("begin_load", { name: "busy.bin" });
}

const DIGITS = "dt:text-is('Written, direct') + dd .stat-digits";

async function picture(page) {
  return page.locator(".plot canvas").first().evaluate((canvas) => canvas.toDataURL());
}

// Bytes go straight to the brick: the number is not zero, and the curve is another one a little later.
export async function chartMoves({ page, output }) {
  await page.goto("/");
  await page.locator(".plot canvas").first().waitFor();
  const seen = await within(10_000, "bytes written directly are shown", async () =>
    Number(await page.locator(DIGITS).textContent()) > 0);
  const before = await picture(page);
  await within(5000, "the curve moves", async () => await picture(page) !== before);
  await page.waitForTimeout(4000); // a few more seconds to see in the picture
  await lookAt(page, "overview", output);
  assert.equal(await page.getByText("ready", { exact: true }).count() > 0, true);
  return `written bytes seen after ${Math.round(seen)} ms`;
}

// The range is part of the address; the busiest are named, and a young server says that it cannot foresee yet.
export async function historyIsShown({ page, output }) {
  await page.goto("/");
  await page.getByRole("radio", { name: "5 min", exact: true }).focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForURL(/range=15m/);
  await page.getByRole("heading", { name: "Used by files" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Used by files" }).waitFor();
  assert.equal(await page.getByRole("radio", { name: "15 min", exact: true }).isChecked(), true);
  await page.getByRole("table", { name: "Busiest clients" }).getByRole("link").first().waitFor();
  await page.getByRole("table", { name: "Busiest files" }).getByText("busy.bin").waitFor();
  await page.getByText("No forecast yet: it needs an hour of history.").waitFor();
  await lookAt(page, "overview-history", output);
  await page.goto("/devices?range=15m");
  await page.getByRole("heading", { name: "Throughput" }).waitFor();
  await lookAt(page, "devices-history", output);
  await page.goto("/exports?range=15m");
  await page.getByRole("heading", { name: "Operations" }).waitFor();
  assert.equal(await page.getByText("Read, iWARP").count(), 0, "bytes are shown that nobody counts");
}
