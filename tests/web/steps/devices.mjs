// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { lookAt, within } from "../checks.mjs";

const EMPTY = { "/": "No device yet", "/devices": "there is no space for files", "/clients": "No client has mounted this server", "/exposure": "no memory to reach" };

export async function devicesEmpty({ page, output }) {
  for (const [path, words] of Object.entries(EMPTY)) {
    await page.goto(path);
    await page.getByText(words).first().waitFor();
    await lookAt(page, `empty${path.replace("/", "-")}`, output);
  }
}

async function add(page, address) {
  await page.goto("/devices");
  await page.getByRole("button", { name: "Add a device" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Control address").fill(address);
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  return dialog;
}

export async function refuseWrongAddress({ page, brick, output }) {
  const dialog = await add(page, `${brick}.nowhere`);
  const took = await within(1000, "the address is refused", async () => await dialog.getByText("No such file or directory").count() > 0);
  const known = await page.evaluate(async () => (await (await fetch("/api/v1/bricks")).json()).items.length);
  assert.equal(known, 0, "a brick that was refused is in the list");
  await lookAt(page, "add-device-refused", output);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.getByText("there is no space for files").waitFor();
  return `${Math.round(took)} ms`;
}

async function addReady(page, address) {
  const dialog = await add(page, address);
  await dialog.waitFor({ state: "detached" });
  const panel = page.getByRole("region", { name: address.replace("unix:", "") });
  await panel.getByText("ready", { exact: true }).waitFor();
  return panel;
}

export async function addDevice({ page, brick, output }) {
  await addReady(page, brick);
  await lookAt(page, "devices", output);
}

async function remove(page, name) {
  await page.getByRole("region", { name, exact: true }).getByRole("button", { name: "Remove…" }).click();
  const dialog = page.getByRole("dialog");
  const button = dialog.getByRole("button", { name: "Remove" });
  if (await button.isEnabled()) throw new Error("removing was possible before the name was typed");
  await dialog.getByLabel("Type the device's name to confirm").fill(name);
  await button.click();
  return dialog;
}

const SECOND_NAME = "rack 4";

async function rename(page, panel) {
  await panel.getByRole("button", { name: "Rename…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill(SECOND_NAME);
  await dialog.getByRole("button", { name: "Rename", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
}

// A second device: named, kept from new files and used again, checked, formatted.
export async function tendDevice(story) {
  const { page, cluster, output } = story;
  story.second = await cluster.ask("another_brick");
  await rename(page, await addReady(page, story.second));
  const panel = page.getByRole("region", { name: SECOND_NAME });
  await panel.getByRole("button", { name: "Drain" }).click();
  await panel.getByText("draining", { exact: true }).waitFor();
  await panel.getByRole("button", { name: "Use again" }).click();
  await panel.getByText("ready", { exact: true }).waitFor();
  const jobs = page.getByRole("table", { name: "Jobs" });
  const cancelled = await cancelCheck(panel, jobs);
  await panel.getByRole("button", { name: "Check" }).click();
  await newest(jobs, "check", "done");
  await panel.getByRole("button", { name: "Format…" }).click();
  const dialog = page.getByRole("dialog");
  const id = await dialog.locator("code.wrap").textContent();
  await dialog.getByLabel("Type the device's id to confirm").fill(id);
  await lookAt(page, "format-device", output);
  await dialog.getByRole("button", { name: "Erase everything on it" }).click();
  await newest(jobs, "format", "done");
  await panel.getByText("ready", { exact: true }).waitFor();
  await lookAt(page, "devices-jobs", output);
  return `cancelled after ${cancelled}`;
}

// Zeroing a brick takes half a minute where the machine has other things to do.
const JOB_MS = 90_000;

// The first row below the head.
async function newest(jobs, kind, state) {
  await jobs.getByRole("row").nth(1).filter({ hasText: new RegExp(`^${kind}.*${state}`) }).waitFor({ timeout: JOB_MS });
}

// A check takes two seconds: on a busy machine it may be done before the button is there.
async function cancelCheck(panel, jobs) {
  for (let round = 1; round <= 8; round++) {
    await panel.getByRole("button", { name: "Check" }).click();
    try {
      await jobs.getByRole("button", { name: "Cancel" }).click({ timeout: 2000 });
      await newest(jobs, "check", "cancelled");
      return `${round} tries`;
    } catch (error) {
      if (error.name !== "TimeoutError") throw error;
      await jobs.getByRole("button", { name: "Cancel" }).waitFor({ state: "detached" });
    }
  }
  throw new Error("no check could be cancelled before it was done");
}

export async function removeDevices({ page, brick, output }) {
  await page.goto("/devices");
  const full = page.getByRole("region", { name: brick.replace("unix:", ""), exact: true });
  await full.getByText("Cannot be formatted or removed now. Files have data on it").waitFor();
  for (const action of ["Format…", "Remove…"]) {
    const button = full.getByRole("button", { name: action });
    assert.equal(await button.getAttribute("aria-disabled"), "true");
    await button.click({ force: true });
    assert.equal(await page.getByRole("dialog").count(), 0, `${action} opened although it would be refused`);
  }
  await lookAt(page, "remove-device-refused", output);
  const panel = page.getByRole("region", { name: SECOND_NAME });
  const empty = await remove(page, SECOND_NAME);
  await empty.waitFor({ state: "detached" });
  await panel.waitFor({ state: "detached" });
}
