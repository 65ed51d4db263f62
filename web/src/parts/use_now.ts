// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";

const TICK_MS = 1000;
const listeners = new Set<(now: number) => void>();
let timer: number | undefined;

function tick(): void {
  const now = Date.now();
  for (const listener of listeners) listener(now);
}

// The time of day, once a second: one timer for every relative time of the page.
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    listeners.add(setNow);
    timer ??= window.setInterval(tick, TICK_MS);
    return () => {
      listeners.delete(setNow);
      if (listeners.size === 0) {
        window.clearInterval(timer);
        timer = undefined;
      }
    };
  }, []);
  return now;
}
