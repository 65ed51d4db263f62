// SPDX-License-Identifier: Apache-2.0
// Lists of 100,000 layouts and 1,000 clients in a real browser, by keyboard only.
// usage: node lists_test.mjs WEB_DIRECTORY OUTPUT_FOLDER
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { Browser } from "./browser.mjs";
import { lookAt } from "./checks.mjs";
import { CLIENTS, LAYOUTS, largeServer } from "./large_server.mjs";

const FIRST_ROWS_MS_MAX = 1000;
const HEAP_BYTES_MAX = 48 << 20;

if (!existsSync(process.env.PNFSRDMA_CHROMIUM ?? "/usr/bin/chromium")) {
  console.log("skipped: chromium is missing (packaging/dependencies.sh web)");
  process.exit(77);
}

// From the request to the first rows; the best of four: how soon, not how busy the machine is.
async function firstRows(page, path, caption) {
  const times = [];
  for (let round = 0; round < 4; round++) {
    await page.goto(path, { waitUntil: "commit" });
    await page.getByRole("table", { name: caption }).getByRole("row").nth(1).waitFor();
    times.push(await page.evaluate(() => performance.now()));
  }
  assert.ok(Math.min(...times) < FIRST_ROWS_MS_MAX, `${path}: rows after ${times.map(Math.round).join(", ")} ms`);
  return `${path}: rows after ${Math.round(Math.min(...times))} ms`;
}

async function heap(page, context) {
  const session = await context.newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize;
}

const firstCell = (page) => page.getByRole("table", { name: "Layouts" }).getByRole("row").nth(1).getByRole("cell").first();
const status = (page, text) => page.getByRole("navigation", { name: "Pages of layouts" }).getByText(text, { exact: true }).waitFor();
const shown = (page) => page.getByRole("table", { name: "Layouts" }).getByRole("cell").first().textContent();

async function press(page, locator, key) {
  await locator.focus();
  await page.keyboard.press(key);
}

async function sortsByKeyboard(page) {
  await status(page, "1 to 50 of 100,000");
  const head = page.getByRole("columnheader", { name: "Reachable" });
  assert.equal(await head.getAttribute("aria-sort"), "none");
  await press(page, head.getByRole("button"), "Enter");
  assert.equal(await head.getAttribute("aria-sort"), "ascending");
  await page.keyboard.press("Space");
  assert.equal(await head.getAttribute("aria-sort"), "descending");
  await firstCell(page).getByText(`/runs/file-${((LAYOUTS - 1) * 7919) % LAYOUTS}.bin`).waitFor();
  assert.equal(await head.getByRole("button").evaluate((button) => button === document.activeElement), true, "the focus is lost");
}

async function pagesAreShared(page, context) {
  await status(page, "1 to 50 of 100,000");
  await press(page, page.getByRole("button", { name: "Next" }), "Enter");
  await status(page, "51 to 100 of 100,000");
  await press(page, page.getByRole("button", { name: "Next" }), "Enter");
  await status(page, "101 to 150 of 100,000");
  const before = await shown(page);
  await page.reload();
  await status(page, "101 to 150 of 100,000");
  assert.equal(await shown(page), before, "a reload shows other rows");
  const other = await context.newPage();
  await other.goto(page.url());
  await status(other, "101 to 150 of 100,000");
  assert.equal(await shown(other), before, "the link shows other rows");
  await other.close();
  await press(page, page.getByRole("button", { name: "Previous" }), "Enter");
  await status(page, "51 to 100 of 100,000");
  await press(page, page.getByRole("button", { name: "Last" }), "Enter");
  await status(page, "99,951 to 100,000 of 100,000");
  await page.goBack();
  await status(page, "51 to 100 of 100,000");
}

async function searchesAndSaves(page) {
  await page.getByLabel("Search layouts").focus();
  await page.keyboard.type("node999- read-write");
  await status(page, "1 to 50 of 50 found in 100,000");
  assert.match(page.url(), /search=node999-\+read-write/);
  const download = page.waitForEvent("download");
  await press(page, page.getByRole("button", { name: "Save layouts as CSV" }), "Enter");
  const lines = readFileSync(await (await download).path(), "utf8").trimEnd().split("\r\n");
  assert.equal(lines.length, 51);
  assert.equal(lines[0], "File,Client,Rights,State,Handles,Reachable (bytes),Age (seconds)");
  assert.ok(lines.slice(1).every((line) => line.includes("node999-") && line.includes("read-write")), lines[1]);
}

async function run(pages, output) {
  const server = await largeServer(pages);
  let browser;
  const steps = [
    ["1,000 clients are seen within a second", ({ page }) => firstRows(page, "/clients", "Clients")],
    ["all of them are counted, a page of them is shown", async ({ page }) => {
      await page.getByText(`1 to 50 of ${CLIENTS.toLocaleString("en")}`).waitFor();
      await lookAt(page, "large-clients", output);
    }],
    ["100,000 layouts are seen within a second", ({ page }) => firstRows(page, "/layouts", "Layouts")],
    ["they are sorted by keyboard", ({ page }) => sortsByKeyboard(page)],
    ["pages are the same after a reload, and by a link", ({ page, context }) => pagesAreShared(page, context)],
    ["what is searched is found and saved as CSV", ({ page }) => searchesAndSaves(page)],
    ["the page looks well", ({ page }) => lookAt(page, "large-layouts", output)],
    ["the memory of the page is bounded", async ({ page, context }) => {
      await page.goto("/layouts");
      await status(page, "1 to 50 of 100,000");
      const used = await heap(page, context);
      assert.ok(used < HEAP_BYTES_MAX, `${used} bytes`);
      return `${(used / 1e6).toFixed(1)} MB`;
    }],
  ];
  let failed = false;
  try {
    browser = await Browser.open(`http://127.0.0.1:${server.address().port}`);
    browser.context.setDefaultTimeout(150_000); // 100,000 rows are read anew for each page that is opened
    for (const [what, step] of steps) {
      const begin = performance.now();
      const note = await step(browser);
      console.log(`ok    ${what} (${Math.round(performance.now() - begin)} ms)${note ? `: ${note}` : ""}`);
    }
    if (browser.complaints.length > 0) throw new Error(`the browser complained:\n${browser.complaints.join("\n")}`);
  } catch (error) {
    failed = true;
    console.log(`FAILED ${error.stack}\nat ${browser?.page.url()}`);
    await browser?.page.screenshot({ path: `${output}/failed.png`, fullPage: true }).catch(() => undefined);
  }
  await browser?.close();
  server.closeAllConnections();
  server.close();
  return failed ? 1 : 0;
}

process.exit(await run(...process.argv.slice(2)));
