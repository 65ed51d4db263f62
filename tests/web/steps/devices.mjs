// SPDX-License-Identifier: Apache-2.0
import { lookAt } from "../checks.mjs";

const EMPTY = { "/": "No device yet", "/devices": "files have nowhere to be", "/clients": "No client is there", "/exposure": "no memory to reach" };

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
  await dialog.getByRole("alert").first().waitFor();
  await lookAt(page, "add-device-refused", output);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.getByText("files have nowhere to be").waitFor();
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

async function remove(page, address) {
  const name = address.replace("unix:", "");
  await page.getByRole("region", { name, exact: true }).getByRole("button", { name: "Remove…" }).click();
  const dialog = page.getByRole("dialog");
  const button = dialog.getByRole("button", { name: "Remove" });
  if (await button.isEnabled()) throw new Error("removing was possible before the name was typed");
  await dialog.getByLabel("Type the device's address to confirm").fill(name);
  await button.click();
  return dialog;
}

// A second device: kept from new files and used again, checked, formatted.
export async function tendDevice(story) {
  const { page, cluster, output } = story;
  story.second = await cluster.ask("another_brick");
  const panel = await addReady(page, story.second);
  await panel.getByRole("button", { name: "Drain" }).click();
  await panel.getByText("draining", { exact: true }).waitFor();
  await panel.getByRole("button", { name: "Use again" }).click();
  await panel.getByText("ready", { exact: true }).waitFor();
  const jobs = page.getByRole("table", { name: "Jobs, newest first" });
  await panel.getByRole("button", { name: "Check" }).click();
  await jobs.getByRole("row", { name: /check.*done/ }).waitFor();
  await panel.getByRole("button", { name: "Format…" }).click();
  const dialog = page.getByRole("dialog");
  const id = await dialog.locator("code.wrap").textContent();
  await dialog.getByLabel("Type the device's id to confirm").fill(id);
  await lookAt(page, "format-device", output);
  await dialog.getByRole("button", { name: "Erase everything on it" }).click();
  await jobs.getByRole("row", { name: /format.*done/ }).waitFor();
  await panel.getByText("ready", { exact: true }).waitFor();
  await lookAt(page, "devices-jobs", output);
}

export async function removeDevices({ page, brick, second, output }) {
  await page.goto("/devices");
  const panel = page.getByRole("region", { name: second.replace("unix:", "") });
  const full = await remove(page, brick);
  await full.getByText("still live there").waitFor();
  await lookAt(page, "remove-device-refused", output);
  await page.keyboard.press("Escape");
  const empty = await remove(page, second);
  await empty.waitFor({ state: "detached" });
  await panel.waitFor({ state: "detached" });
}
