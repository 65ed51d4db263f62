// SPDX-License-Identifier: Apache-2.0
import type { Event as ServerEvent } from "../../api/generated";

export const EVENTS_SHOWN_MAX = 2000;

// What is shown, newest first: `fresh` (in any order) joined in, each event once. Events of an earlier run of the server
// stay below those of the present one.
export function joinedEvents(shown: ServerEvent[], fresh: ServerEvent[]): ServerEvent[] {
  const known = new Set(shown.map(identity));
  const added = fresh.filter((event) => !known.has(identity(event)));
  if (added.length === 0) return shown;
  return [...added, ...shown].sort(newestFirst).slice(0, EVENTS_SHOWN_MAX);
}

export function identity(event: ServerEvent): string {
  return `${event.run}:${event.sequence}`;
}

function newestFirst(a: ServerEvent, b: ServerEvent): number {
  if (a.run === b.run) return b.sequence - a.sequence;
  return Date.parse(b.time) - Date.parse(a.time);
}
