// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { lookAt } from "../checks.mjs";

export async function exportsEmpty({ page, output }) {
  await page.goto("/exports");
  await remove(page, "/old");
  await page.getByText("Nothing is exported").waitFor();
  await lookAt(page, "empty-exports", output);
}

export async function createExport({ page, output }) {
  await page.getByRole("button", { name: "New export" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Path").fill("no-slash");
  await dialog.getByText("A path starts with /.").waitFor();
  await lookAt(page, "new-export", output);
  await dialog.getByLabel("Path").fill("/");
  await dialog.getByLabel("Client networks").fill("127.0.0.0/8");
  await dialog.getByLabel("root squash").uncheck();
  await dialog.getByRole("button", { name: "Export", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("row", { name: "127.0.0.0/8" }).waitFor();
  const port = await page.evaluate(async () => (await (await fetch("/api/v1/configuration")).json()).settings.listen.value[0].split(":").pop());
  assert.match(await page.getByLabel("Commands").textContent(), new RegExp(`-o port=${port} .*vers=4\\.2,port=${port} `, "s"));
  await lookAt(page, "exports", output);
}

async function editAnonymousUser(page, id) {
  await page.getByRole("button", { name: "Edit /", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Anonymous user").fill(id);
  return dialog;
}

// Another administrator, in a window of their own, is faster.
export async function editConflict({ page, context, output }) {
  await page.goto("/exports");
  const mine = await editAnonymousUser(page, "1001");
  const other = await context.newPage();
  await other.goto("/exports");
  const theirs = await editAnonymousUser(other, "2002");
  await theirs.getByRole("button", { name: "Save" }).click();
  await theirs.waitFor({ state: "detached" });
  await other.close();

  await mine.getByRole("button", { name: "Save" }).click();
  await mine.getByText("Somebody else changed it meanwhile.").waitFor();
  const row = await mine.getByRole("row", { name: "Anonymous user" }).textContent();
  assert.match(row, /2002.*1001/);
  await lookAt(page, "edit-conflict", output);
  await mine.getByRole("button", { name: "Keep my changes and save again" }).click();
  await mine.getByRole("button", { name: "Save" }).click();
  await mine.waitFor({ state: "detached" });
  const saved = await page.evaluate(async () => (await (await fetch("/api/v1/exports")).json()).items[0].anonuid);
  assert.equal(saved, 1001);
}

// Another one, so that the mount keeps what it has.
export async function removeExport({ page, output }) {
  await page.goto("/exports");
  await page.getByRole("button", { name: "New export" }).first().click();
  const made = page.getByRole("dialog");
  await made.getByLabel("Path").fill("/not/there/yet");
  await made.getByText("It is inside the export /.").waitFor();
  await made.getByText("1 client has / mounted now. All of them may mount /not/there/yet.").waitFor();
  await made.getByLabel("Client networks").fill("192.0.2.0/24");
  await made.getByText(/^1 of them loses \/not\/there\/yet: .+-[0-9a-f]{6}\.$/).waitFor();
  await lookAt(page, "new-export-inside", output);
  await made.getByLabel("Client networks").fill("");
  await made.getByRole("button", { name: "Export", exact: true }).click();
  await made.waitFor({ state: "detached" });
  await page.getByText("Clients of / must reopen their files").waitFor();
  const row = page.getByRole("row", { name: "/not/there/yet" });
  await row.getByText("no such directory").waitFor();
  await row.getByText("everybody").waitFor();
  await remove(page, "/not/there/yet");
  await row.waitFor({ state: "detached" });
}

async function remove(page, path) {
  await page.getByRole("button", { name: `Remove ${path}`, exact: true }).click();
  const dialog = page.getByRole("dialog");
  const button = dialog.getByRole("button", { name: "Remove", exact: true });
  await dialog.getByLabel("Type the export's path to confirm").fill(path.slice(0, -1));
  assert.equal(await button.isEnabled(), false, "removing was possible before the whole path was typed");
  await dialog.getByLabel("Type the export's path to confirm").fill(path);
  await button.click();
  await dialog.waitFor({ state: "detached" });
}
