// SPDX-License-Identifier: Apache-2.0
// The page Cluster of two metadata servers that share a log in etcd, whose hosts and members are lost one after the other.
// usage: node cluster_test.mjs BIN_DIRECTORY WEB_DIRECTORY OUTPUT_FOLDER
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { Browser } from "./browser.mjs";
import { lookAt } from "./checks.mjs";
import { Cluster } from "./cluster.mjs";
import { firstStart, logIn, PASSWORD } from "./steps/entry.mjs";

const SKIPPED = 77;
const SOON_MS = 90_000; // a server counts as away after some seconds; a machine with much else to do

function whyNot() {
  if (process.getuid() !== 0) return "root is needed to mount";
  if (!existsSync("/dev/fuse")) return "/dev/fuse is missing";
  if (!existsSync(process.env.PNFSRDMA_CHROMIUM ?? "/usr/bin/chromium")) return "chromium is missing (packaging/dependencies.sh web)";
  try {
    execFileSync("etcd", ["--version"], { stdio: "ignore" });
  } catch {
    return "etcd is not installed (packaging/dependencies.sh test)";
  }
  return undefined;
}

const row = (page, table, name) => page.getByRole("table", { name: table }).getByRole("row").filter({ has: page.getByText(name, { exact: true }) });
const says = (locator, text) => locator.getByText(text, { exact: true }).first().waitFor({ timeout: SOON_MS });
const takeOver = (page, word) => says(page.getByRole("region", { name: "Take-over" }), word);

// All of it is well: who leads, who follows, that nothing is behind, the window of the log, and the witness.
async function showsAll({ page, output }) {
  await page.goto("/cluster");
  await takeOver(page, "possible");
  const state = page.getByRole("region", { name: "Take-over" });
  await state.getByText(/^mds, for /).waitFor();
  await state.getByText(/^[0-9,]+ values, trimmed to [0-9,]+$/).waitFor();
  await state.getByText(/ of 512 MiB of the log that some server may still need/).waitFor();
  await says(row(page, "Metadata servers", "mds"), "leads");
  await says(row(page, "Metadata servers", "mds2"), "follows");
  await row(page, "Metadata servers", "mds2").getByRole("cell").nth(3).getByText("0", { exact: true }).waitFor({ timeout: SOON_MS });
  for (const name of ["mds", "mds2", "witness"]) await says(row(page, "Members of etcd", name), "answers");
  const roles = await Promise.all(["mds", "mds2", "witness"].map((name) => row(page, "Members of etcd", name).getByRole("cell").nth(2).textContent()));
  assert.deepEqual(roles, ["beside a metadata server", "beside a metadata server", "witness"]);
  assert.equal(await page.getByRole("table", { name: "Members of etcd" }).getByText("yes", { exact: true }).count(), 1, "one member leads etcd");
  assert.equal(await page.getByRole("region", { name: "Problems" }).count(), 0);
  await lookAt(page, "cluster", output);
}

async function showsTls({ page, output }) {
  await page.goto("/devices");
  const table = page.getByRole("table", { name: "Devices" });
  for (const word of ["this host only", "TLS", "no TLS"]) await says(table, word);
  assert.deepEqual(await table.getByText("TLS", { exact: true }).count(), 1);
  await lookAt(page, "devices-control", output);
}

async function standbyIsLost({ page, cluster, output }) {
  await page.goto("/cluster");
  await cluster.ask("kill", { name: "mds2" });
  await says(row(page, "Metadata servers", "mds2"), "away");
  await takeOver(page, "not possible");
  const problems = page.getByRole("region", { name: "Problems" });
  await problems.getByText("mds2 neither leads nor follows.").waitFor();
  await problems.getByText("pnfsrdma cluster leave mds2").waitFor();
  await lookAt(page, "cluster-standby-lost", output);
  await cluster.ask("write", { files: 20 });
  await page.waitForFunction(() => Number(document.querySelector("table tr:has(.badge-bad) td:nth-child(4)")?.textContent.replaceAll(",", "")) > 0,
    undefined, { timeout: SOON_MS });
  await lookAt(page, "cluster-standby-behind", output);
  await cluster.ask("follow", { name: "mds2" });
  await takeOver(page, "possible");
}

async function witnessIsLost({ page, cluster, output }) {
  await cluster.ask("kill_member", { name: "witness" });
  await says(row(page, "Members of etcd", "witness"), "silent");
  await takeOver(page, "not possible");
  await page.getByRole("region", { name: "Problems" }).getByText(/^etcd's member witness .* does not answer\.$/).waitFor();
  await lookAt(page, "cluster-witness-lost", output);
}

// Nobody serves then: the page says that the server does not answer, and goes on when one does again.
async function quorumIsLost({ page, cluster, output }) {
  await cluster.ask("kill", { name: "mds2" });
  await cluster.ask("kill_member", { name: "mds2" });
  // The server still answers for some seconds.
  await page.getByText("etcd has no quorum: 1 of 3 members answer, so nobody serves.").waitFor({ timeout: SOON_MS });
  await page.getByText("Not known while etcd does not answer.").waitFor({ timeout: SOON_MS });
  await cluster.ask("wait_until_fenced", { name: "mds" });
  await page.getByText("The server does not answer.").waitFor({ timeout: SOON_MS });
  await lookAt(page, "cluster-no-quorum", output);
  for (const name of ["mds2", "witness"]) await cluster.ask("start_member", { name });
  await cluster.ask("serve_again", { name: "mds" });
  await page.goto("/cluster");
  await logIn(page, "admin", PASSWORD);
  await says(row(page, "Metadata servers", "mds"), "leads");
  await says(row(page, "Members of etcd", "witness"), "answers");
}

const steps = [
  ["the first start sets the password", firstStart],
  ["servers, members, leader, lag, window and witness are shown", showsAll],
  ["who may control a brick is shown", showsTls],
  ["a standby that is lost is away and behind, and comes back", standbyIsLost],
  ["a witness that is lost is silent", witnessIsLost],
  ["without a quorum nobody answers; then it goes on", quorumIsLost],
];

async function run(binaries, pages, output) {
  rmSync(output, { recursive: true, force: true });
  const cluster = new Cluster(binaries, pages, "pair_service.py");
  let browser;
  let failed = false;
  try {
    const { port } = await cluster.ask("start");
    browser = await Browser.open(`https://127.0.0.1:${port}`);
    const story = { cluster, output, page: browser.page };
    for (const [what, step] of steps) {
      const begin = performance.now();
      await step(story);
      console.log(`ok    ${what} (${Math.round(performance.now() - begin)} ms)`);
    }
    const complaints = browser.complaints.filter((text) => !/^Failed to load resource: (net::|the server responded with a status of 503)/.test(text));
    if (complaints.length > 0) throw new Error(`the browser complained:\n${complaints.join("\n")}`);
  } catch (error) {
    failed = true;
    console.log(`FAILED ${error.stack}`);
    await browser?.page.screenshot({ path: `${output}/failed.png`, fullPage: true }).catch(() => undefined);
    for (const name of ["mds", "mds2"]) console.log(await cluster.ask("log", { name }).catch(() => ""));
  }
  await browser?.close();
  const code = await cluster.close();
  if (code !== 0) console.log(`FAILED the programs ended with ${code}`);
  return failed || code !== 0 ? 1 : 0;
}

const why = whyNot();
if (why) {
  console.log(`skipped: ${why}`);
  process.exit(SKIPPED);
}
process.exit(await run(...process.argv.slice(2)));
