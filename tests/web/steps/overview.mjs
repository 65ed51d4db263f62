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
