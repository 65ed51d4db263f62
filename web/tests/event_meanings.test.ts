// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { EVENT_MEANINGS } from "../src/pages/events/generated";

test("events of the server are explained, without the marks of the document", () => {
  expect(EVENT_MEANINGS["layout-revoked"]?.meaning).toMatch(/administrator/);
  expect(EVENT_MEANINGS["login-failed"]?.remedy).not.toBe("");
  expect(JSON.stringify(EVENT_MEANINGS)).not.toMatch(/`|\]\(/);
});

test("events of mounts are not among them", () => {
  expect(EVENT_MEANINGS["transport-fallback"]).toBeUndefined();
});
