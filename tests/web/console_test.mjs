// SPDX-License-Identifier: Apache-2.0
// The console from its first start to the viewer who is refused: the real programs, a real mount that works, a real browser.
// usage: node console_test.mjs BIN_DIRECTORY WEB_DIRECTORY OUTPUT_FOLDER
// Pictures of every page are left in OUTPUT_FOLDER.
import { existsSync, rmSync } from "node:fs";
import { Browser } from "./browser.mjs";
import { weigh } from "./checks.mjs";
import { Cluster } from "./cluster.mjs";
import { steps } from "./steps/all.mjs";

const SKIPPED = 77;

function skipUnlessPossible() {
  const why = process.getuid() !== 0 ? "root is needed to mount"
    : !existsSync("/dev/fuse") ? "/dev/fuse is missing"
    : !existsSync(process.env.PNFSRDMA_CHROMIUM ?? "/usr/bin/chromium") ? "chromium is missing (packaging/dependencies.sh web)"
    : undefined;
  if (why) {
    console.log(`skipped: ${why}`);
    process.exit(SKIPPED);
  }
}

async function run(binaries, pages, output) {
  rmSync(output, { recursive: true, force: true });
  console.log(`ok    the pages weigh ${(weigh(pages) / 1000).toFixed(1)} kB gzipped`);
  const cluster = new Cluster(binaries, pages);
  let browser;
  let failed = false;
  try {
    const { port, brick } = await cluster.ask("start");
    browser = await Browser.open(`https://127.0.0.1:${port}`);
    const story = { cluster, brick, output, page: browser.page, context: browser.context, base: `https://127.0.0.1:${port}`, measured: {} };
    for (const [what, step] of steps) {
      const begin = performance.now();
      const note = await step(story);
      console.log(`ok    ${what} (${Math.round(performance.now() - begin)} ms)${note ? `: ${note}` : ""}`);
    }
    if (browser.complaints.length > 0) throw new Error(`the browser complained:\n${browser.complaints.join("\n")}`);
  } catch (error) {
    failed = true;
    console.log(`FAILED ${error.stack}`);
    await browser?.page.screenshot({ path: `${output}/failed.png`, fullPage: true }).catch(() => undefined);
    if (browser) console.log(`at ${browser.page.url()}; complaints: ${browser.complaints.join("\n") || "none"}`);
    console.log(await cluster.ask("log", { name: "mds" }).catch(() => ""));
  }
  await browser?.close();
  const code = await cluster.close();
  if (code !== 0) console.log(`FAILED the programs ended with ${code}`);
  return failed || code !== 0 ? 1 : 0;
}

skipUnlessPossible();
const [binaries, pages, output] = process.argv.slice(2);
process.exit(await run(binaries, pages, output));
