// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { lookAt } from "../checks.mjs";
import { logIn, PASSWORD } from "./entry.mjs";
import { VIEWER } from "./settings.mjs";

export async function logOut({ page, output }) {
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByRole("heading", { name: "Log in" }).waitFor();
  await lookAt(page, "login", output);
  await page.goBack();
  await page.getByRole("heading", { name: "Log in" }).waitFor();
  assert.equal(await page.evaluate(async () => (await fetch("/api/v1/bricks")).status), 401);
  await logIn(page, "admin", `${PASSWORD}?`);
  await page.getByRole("alert").first().waitFor();
}

const CHANGES =
  /^(Add a device|Check|Format…|Remove…|New export|New snapshot|Change schedule|Pin|New limits|New quota tree|Switch on|Grace|Each|Count again|Edit|Revoke|Expel|New user)/;

export async function viewerIsRefused({ page, cluster, output }) {
  await page.goto("/");
  await logIn(page, VIEWER.user, VIEWER.password);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await cluster.ask("write", { name: "viewed.bin", mebibytes: 2 });
  for (const path of ["/devices", "/exports", "/quotas", "/snapshots", "/clients", "/exposure"]) {
    await page.goto(path);
    await page.getByRole("table").or(page.getByRole("region")).first().waitFor();
    await page.waitForTimeout(500);
    const offered = await page.getByRole("button", { name: CHANGES }).allTextContents();
    assert.deepEqual(offered, [], `offered to a viewer at ${path}`);
  }
  await lookAt(page, "viewer-exposure", output);
  const refused = await page.evaluate(async () => {
    const { csrf_token } = await (await fetch("/api/v1/session")).json();
    const { items } = await (await fetch("/api/v1/clients")).json();
    const headers = { "X-CSRF-Token": csrf_token, "Content-Type": "application/json" };
    const answers = await Promise.all([
      fetch(`/api/v1/clients/${items[0].id}`, { method: "DELETE", headers }),
      fetch("/api/v1/exports", { method: "POST", headers, body: JSON.stringify({ path: "/mine" }) }),
      fetch("/api/v1/users"), fetch("/api/v1/audit"),
    ]);
    return answers.map(({ status }) => status);
  });
  assert.deepEqual(refused, [403, 403, 403, 403]);
  await page.goto("/settings/users");
  await page.getByText("your role may not see it").waitFor();
}
