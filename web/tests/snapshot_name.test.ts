// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { nameFault } from "../src/pages/snapshots/snapshot_name";

test.each([["", true], ["2026-11-28T01.30.00Z", true], ["before the update", true], [".", false], ["..", false], ["a/b", false], ["a\nb", false],
  ["x".repeat(128), true], ["x".repeat(129), false], ["é".repeat(65), false]])(
  "the name %j of a snapshot: %s", (name, good) => expect(nameFault(name) === undefined).toBe(good));
