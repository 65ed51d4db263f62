// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import type { Polled } from "../api/use_poll";
import { agoText } from "../format/time";
import { useNow } from "./use_now";
import { ProblemNote } from "./problem_note";

// The three states of everything that comes from the server: not there yet, failed (what was last known stays, marked
// as old), there.
export function Loaded<T>({ from, children }: { from: Polled<T>; children: (value: T) => ComponentChildren }) {
  const now = useNow();
  return (
    <>
      <ProblemNote problem={from.problem} retry={from.refresh} />
      {from.value === undefined
        ? !from.problem && <p class="loading" role="status">Loading…</p>
        : (
          <>
            {from.problem && <p class="muted">What follows is from {agoText(now - from.at)}.</p>}
            {children(from.value)}
          </>
        )}
    </>
  );
}
