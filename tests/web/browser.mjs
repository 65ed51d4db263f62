// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const packages = createRequire(fileURLToPath(new URL("../../web/package.json", import.meta.url)));
const { chromium } = packages("playwright-core");

export const axeSource = readFileSync(packages.resolve("axe-core/axe.min.js"), "utf8");

const ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

// Debian's Chromium with a profile of its own. What a page complains of is kept in `complaints`.
export class Browser {
  static async open(base) {
    const browser = new Browser();
    browser.profile = mkdtempSync(join(tmpdir(), "pnfsrdma-web."));
    browser.complaints = [];
    browser.context = await chromium.launchPersistentContext(browser.profile, {
      executablePath: process.env.PNFSRDMA_CHROMIUM ?? "/usr/bin/chromium", headless: true, args: ARGUMENTS,
      ignoreHTTPSErrors: true, baseURL: base, viewport: { width: 1440, height: 900 }, colorScheme: "light",
    });
    browser.page = browser.context.pages()[0] ?? await browser.context.newPage();
    browser.context.setDefaultTimeout(20_000);
    browser.page.on("pageerror", (error) => browser.complaints.push(`error in the page: ${error.message}`));
    browser.page.on("console", (message) => {
      if (message.type() === "error" && !expected(message.text())) browser.complaints.push(message.text());
    });
    return browser;
  }

  async close() {
    await this.context?.close();
    rmSync(this.profile, { recursive: true, force: true });
  }
}

// The browser reports every refusal of the server; the test asks for some.
function expected(text) {
  return /^Failed to load resource: (the server responded with a status of 4\d\d|net::ERR_ABORTED)/.test(text);
}
