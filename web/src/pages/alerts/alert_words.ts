// SPDX-License-Identifier: Apache-2.0
import type { Alert } from "../../api/generated";
import type { Tone } from "../../parts/badge";

export const SEVERITY_TONES: Record<Alert["severity"], Tone> = { critical: "bad", warning: "warn" };

// What people call its state: an acknowledged one still fires, and asks for nothing.
export function stateOf(alert: Alert): string {
  return alert.state === "firing" && !alert.needs_attention ? "acknowledged" : alert.state;
}

export function stateTone(alert: Alert): Tone {
  if (alert.needs_attention) return SEVERITY_TONES[alert.severity];
  return alert.state === "resolved" ? "good" : "quiet";
}

// "1 alert", "3 alerts": those that ask for attention.
export function countText(count: number): string {
  return `${count} ${count === 1 ? "alert" : "alerts"}`;
}

// Critical ones first, then the newest.
export function byUrgency(a: Alert, b: Alert): number {
  return Number(b.severity === "critical") - Number(a.severity === "critical") || b.id - a.id;
}
