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
  await reachIsTheLayouts(page);
  await hoverMovesNothing(page);
  return `${Math.round(took)} ms after the write`;
}

// The map, the list of layouts and the client tell one number, and the page shows that one.
async function reachIsTheLayouts(page) {
  const told = await page.evaluate(async () => {
    const get = async (path) => (await fetch(`/api/v1${path}`)).json();
    const { items: [layout] } = await get("/layouts?path=/idle.bin");
    const { items: [brick] } = await get("/bricks");
    const { runs } = await get(`/bricks/${brick.id}/blocks?limit=10000`);
    const grants = runs.flatMap((run) => run.grants).filter((grant) => grant.layout === layout.id);
    return { layout: layout.bytes, map: grants.reduce((sum, grant) => sum + grant.bytes, 0) };
  });
  assert.ok(told.layout >= 8 << 20, JSON.stringify(told));
  assert.equal(told.map, told.layout);
  const shown = `${(told.layout / (1 << 20)).toPrecision(3)} MiB`;
  assert.ok((await row(page, "idle.bin").textContent()).includes(shown), `${shown} is not shown`);
}

// What is said about a block has its room, whether it is said or not.
async function hoverMovesNothing(page) {
  const map = page.getByRole("application", { name: "Block map" });
  const panel = page.locator(".exposure .panel").first();
  const { width, height } = await map.boundingBox();
  const before = await panel.boundingBox();
  for (let step = 0; step < 40; step++) {
    const y = Math.min(height - 2, Math.floor(step / 20) * 22 + 5);
    await map.hover({ position: { x: (width * (step % 20) + 10) / 20, y }, force: true });
    assert.equal((await panel.boundingBox()).height, before.height, `the panel moves at step ${step}`);
  }
}

export async function walkByKeyboard({ page, output }) {
  const map = page.getByRole("application", { name: "Block map" });
  await map.focus();
  for (const key of ["Home", "n", "ArrowRight", "ArrowLeft"]) await page.keyboard.press(key);
  const words = await page.locator("#block-at").textContent();
  assert.match(words, /^Blocks? \d+.*: (writable|readable) by a client, .+ of 2\.00 MiB\. .+ (writes|reads) .*\.bin/);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: /^Who reaches block/ }).waitFor();
  await lookAt(page, "exposure-block", output);
  await map.focus();
  await page.keyboard.press("Escape");
  await page.getByRole("heading", { name: "Who reaches it" }).waitFor();
}

export async function revokeIdle({ page, output }) {
  await page.getByRole("button", { name: "Revoke /idle.bin" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Writes that it has not flushed are lost").waitFor();
  assert.equal(await row(page, "idle.bin").count(), 1, "revoked before it was confirmed");
  await lookAt(page, "revoke", output);
  const begin = performance.now();
  await dialog.getByRole("button", { name: "Revoke", exact: true }).click();
  await within(SECOND, "the layout is off the map", async () => await row(page, "idle.bin").count() === 0);
  const took = performance.now() - begin;
  const said = await page.getByText(/handles? dead after \d+ ms/).first().textContent();
  const stays = await page.evaluate(async () => (await (await fetch("/api/v1/layouts?path=/idle.bin")).json()).items.length);
  assert.equal(stays, 0, "the server still knows the layout");
  await dialog.getByText("Not granted again so far.").waitFor();
  await dialog.getByRole("button", { name: "Close", exact: true }).last().click();
  return `gone ${Math.round(took)} ms after the click; ${said.replace("×", "")}`;
}

// What the README promises: a client whose layout was revoked asks for a new one and loses nothing.
export async function revokeUnderLoad({ page, cluster, output }) {
  const before = await cluster.ask("statistics");
  const button = page.getByRole("button", { name: "Revoke /busy.bin" });
  const dialog = page.getByRole("dialog");
  for (let round = 0; round < 3; round++) {
    await button.click();
    await dialog.getByRole("button", { name: "Revoke", exact: true }).click();
    await dialog.getByText(/Granted again after \d+\.\d s/).waitFor();
    if (round === 0) await lookAt(page, "revoked-granted-again", output);
    await dialog.getByRole("button", { name: /^Expel .+…$/ }).waitFor();
    await dialog.getByRole("button", { name: "Close", exact: true }).last().click();
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
