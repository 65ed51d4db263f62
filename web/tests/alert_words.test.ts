// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import type { Alert } from "../src/api/generated";
import { byUrgency, countText, stateOf, stateTone } from "../src/pages/alerts/alert_words";

function alert(changes: Partial<Alert>): Alert {
  return {
    id: 1, rule: "PnfsrdmaBrickAway", severity: "critical", state: "firing", needs_attention: true, subject_kind: "brick", subject: "b1",
    summary: "The brick rack1 is unreachable", description: "", since: "2026-03-01T09:30:00Z", fired: "2026-03-01T09:31:00Z",
    resolved: null, acknowledged: null, ...changes,
  };
}

describe("an alert", () => {
  test("that somebody has acknowledged fires quietly", () => {
    expect(stateOf(alert({}))).toBe("firing");
    expect(stateTone(alert({}))).toBe("bad");
    expect(stateOf(alert({ needs_attention: false }))).toBe("acknowledged");
    expect(stateTone(alert({ needs_attention: false }))).toBe("quiet");
  });

  test("has the colour of its severity only while it asks for attention", () => {
    expect(stateTone(alert({ severity: "warning" }))).toBe("warn");
    expect(stateTone(alert({ state: "pending", needs_attention: false }))).toBe("quiet");
    expect(stateTone(alert({ state: "resolved", needs_attention: false }))).toBe("good");
  });

  test("that is critical comes first, then the newest", () => {
    const sorted = [alert({ id: 1, severity: "warning" }), alert({ id: 2 }), alert({ id: 3, severity: "warning" }), alert({ id: 4 })].sort(byUrgency);
    expect(sorted.map(({ id }) => id)).toEqual([4, 2, 3, 1]);
  });

  test("is counted in words", () => {
    expect(countText(1)).toBe("1 alert");
    expect(countText(2)).toBe("2 alerts");
  });
});
