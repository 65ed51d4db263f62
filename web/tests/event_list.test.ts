// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { Event as ServerEvent } from "../src/api/generated";
import { EVENTS_SHOWN_MAX, identity, joinedEvents } from "../src/pages/events/event_list";

function event(run: string, sequence: number): ServerEvent {
  const time = new Date((run === "old" ? 0 : 1e9) + sequence * 1000).toISOString();
  return { run, sequence, time, level: "info", component: "c", name: "n", fields: {}, text: "" };
}

test("newest first, each once, an earlier run of the server below the present one", () => {
  const shown = joinedEvents([event("old", 9)], [event("new", 1), event("new", 2), event("old", 9), event("new", 1)].slice(0, 3));
  expect(shown.map(identity)).toEqual(["new:2", "new:1", "old:9"]);
});
test("what is known changes nothing", () => {
  const shown = [event("a", 1)];
  expect(joinedEvents(shown, [event("a", 1)])).toBe(shown);
});
test("the list does not grow without end", () => {
  const many = Array.from({ length: EVENTS_SHOWN_MAX + 50 }, (_, index) => event("a", index + 1));
  const shown = joinedEvents([], many);
  expect([shown.length, shown[0]?.sequence]).toEqual([EVENTS_SHOWN_MAX, EVENTS_SHOWN_MAX + 50]);
});
