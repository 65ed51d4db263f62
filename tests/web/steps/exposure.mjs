// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { lookAt, within } from "../checks.mjs";

const SECOND = 1000;

function row(page, file) {
  return page.getByRole("row", { name: file });
}

export async function layoutAppears({ page, cluster, output }) {
  await page.goto("/exposure");
  await page.getByRole("application", { name: "Block map" }).waitFor();
  await row(page, "busy.bin").waitFor();
  assert.equal(await row(page, "idle.bin").count(), 0);
  await cluster.ask("write", { name: "idle.bin", mebibytes: 8 });
  const took = await within(SECOND, "the layout is on the map", async () => await row(page, "idle.bin").count() === 1);
  await lookAt(page, "exposure", output);
  return `${Math.round(took)} ms after the write`;
}

export async function walkByKeyboard({ page, output }) {
  const map = page.getByRole("application", { name: "Block map" });
  await map.focus();
  for (const key of ["Home", "n", "ArrowRight", "ArrowLeft"]) await page.keyboard.press(key);
  const words = await page.locator("#block-at").textContent();
  assert.match(words, /^Blocks? \d+.*: (writable|readable) by a client\. .+ (writes|reads) .*\.bin/);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: /^Who reaches block/ }).waitFor();
  await lookAt(page, "exposure-block", output);
  await map.focus();
  await page.keyboard.press("Escape");
  await page.getByRole("heading", { name: "Who reaches it" }).waitFor();
}

export async function revokeIdle({ page }) {
  const button = page.getByRole("button", { name: "Revoke /idle.bin" });
  const begin = performance.now();
  await button.click();
  await within(SECOND, "the layout is off the map", async () => await row(page, "idle.bin").count() === 0);
  const took = performance.now() - begin;
  const said = await page.getByText(/handles? dead after \d+ ms/).first().textContent();
  const stays = await page.evaluate(async () => (await (await fetch("/api/v1/layouts?path=/idle.bin")).json()).items.length);
  assert.equal(stays, 0, "the server still knows the layout");
  return `gone ${Math.round(took)} ms after the click; ${said.replace("×", "")}`;
}

// What the README promises: a client whose layout was revoked asks for a new one and loses nothing.
export async function revokeUnderLoad({ page, cluster }) {
  const before = await cluster.ask("statistics");
  const button = page.getByRole("button", { name: "Revoke /busy.bin" });
  for (let round = 0; round < 3; round++) {
    await button.click();
    await page.waitForTimeout(700);
  }
  await row(page, "busy.bin").waitFor();
  const load = await cluster.ask("end_load", { name: "busy.bin" });
  assert.equal(load.different, 0, JSON.stringify(load));
  assert.deepEqual(load.errors, {}, JSON.stringify(load));
  const after = await cluster.ask("statistics");
  return `${load.turns} turns, ${Math.round(load.written / 1e6)} MB written, no error; statistics ${difference(before, after)}`;
}

function difference(before, after) {
  const changed = Object.entries(after).filter(([key, value]) => typeof value === "number" && /layout|revok|recall/.test(key) && value !== before[key]);
  return changed.map(([key, value]) => `${key} +${value - before[key]}`).join(", ") || "(none)";
}
