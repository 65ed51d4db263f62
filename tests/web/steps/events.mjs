// SPDX-License-Identifier: Apache-2.0
import { lookAt, within } from "../checks.mjs";

export async function eventsArrive({ page, cluster, output }) {
  await cluster.ask("write", { name: "event.bin", mebibytes: 2 });
  await page.goto("/events");
  await page.getByText("live", { exact: true }).waitFor();
  const rows = page.getByRole("table", { name: "Events" }).getByRole("row");
  await rows.nth(1).waitFor();
  const newest = () => rows.nth(1).textContent();
  const before = await newest();
  await page.evaluate(async () => {
    const { csrf_token } = await (await fetch("/api/v1/session")).json();
    const { items } = await (await fetch("/api/v1/layouts?path=/event.bin")).json();
    await fetch(`/api/v1/layouts/${items[0].id}`, { method: "DELETE", headers: { "X-CSRF-Token": csrf_token } });
  });
  const took = await within(2000, "a revocation shows among the events", async () => await newest() !== before);
  await page.getByText("An administrator revoked a layout.").first().waitFor();
  await lookAt(page, "events", output);
  await page.getByLabel("Level").selectOption("error");
  await page.getByLabel("Component").fill("no-such-component");
  await page.getByText("No matching events.").waitFor();
  return `${Math.round(took)} ms after the revocation was answered`;
}
