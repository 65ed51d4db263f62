// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { axeSource } from "./browser.mjs";

const WEIGHT_MAX = 150_000;
const FIRST_PAINT_MS_MAX = 500;
const SIZES = [{ width: 1440, height: 900 }, { width: 390, height: 844 }];
const SCHEMES = ["light", "dark"];
// Pages that docs/console.md shows; with PNFSRDMA_PICTURES=FOLDER their pictures are made anew there.
const SHOWN = ["first-start", "overview", "alerts", "devices", "exports", "clients", "layouts", "exposure-block", "events", "rest-api",
  "settings-users", "settings-tokens", "settings-server", "settings-webhook", "settings-audit"];

// Looks at the page as everybody may see it: wide and narrow, light and dark. Each is kept as a picture, fits its width,
// and axe finds nothing.
export async function lookAt(page, name, folder) {
  mkdirSync(folder, { recursive: true });
  for (const colorScheme of SCHEMES) {
    for (const size of SIZES) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.setViewportSize(size);
      await page.waitForTimeout(400);
      await page.screenshot({ path: join(folder, `${name}-${size.width}-${colorScheme}.png`), fullPage: true });
      if (process.env.PNFSRDMA_PICTURES && SHOWN.includes(name) && size === SIZES[0] && colorScheme === "light") {
        await page.screenshot({ path: join(process.env.PNFSRDMA_PICTURES, `${name}.png`) });
      }
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.equal(wider, 0, `${name} at ${size.width} px is ${wider} px too wide`);
      await accessible(page, `${name} ${size.width} ${colorScheme}`);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize(SIZES[0]);
}

async function accessible(page, where) {
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  const text = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(" ")).join(", ")}`);
  assert.deepEqual(text, [], where);
}

// All files together, as a browser gets them.
export function weigh(folder) {
  const files = (at) => readdirSync(at).flatMap((name) => {
    const path = join(at, name);
    return statSync(path).isDirectory() ? files(path) : [path];
  });
  const weight = files(folder).filter((path) => !path.includes("CMake") && !path.includes("cmake"))
    .reduce((sum, path) => sum + gzipSync(readFileSync(path)).length, 0);
  assert.ok(weight < WEIGHT_MAX, `the pages weigh ${weight} bytes gzipped, more than ${WEIGHT_MAX}`);
  return weight;
}

// The best of three: how soon something is seen, not how busy the machine is.
export async function firstPaint(page) {
  const times = [];
  for (let round = 0; round < 3; round++) {
    await page.reload();
    await page.waitForSelector("h1");
    times.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Infinity));
  }
  const best = Math.min(...times);
  assert.ok(best < FIRST_PAINT_MS_MAX, `first paint after ${times.map(Math.round).join(", ")} ms`);
  return best;
}

// Tries again until it is true; `what` is said when it never is. Returns how long it took, ms.
export async function within(milliseconds, what, condition) {
  const begin = performance.now();
  for (;;) {
    if (await condition()) return performance.now() - begin;
    if (performance.now() - begin > milliseconds) throw new Error(`not within ${milliseconds} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
