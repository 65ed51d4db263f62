// SPDX-License-Identifier: Apache-2.0
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { asProblem, type Problem } from "./problem";

export interface Polled<T> {
  // The newest answer; kept while the server is away.
  value: T | undefined;
  // Why the last attempt failed; undefined after a success.
  problem: Problem | undefined;
  // When the newest answer came, in ms since the epoch.
  at: number;
  // Asks again now.
  refresh: () => void;
}

// Asks again `interval_ms` after each answer (never two requests at once), not while the page is hidden. `key` names
// what is asked for: another key starts over. interval_ms 0: only once and on refresh(). It waits at least `rest` times as long
// as the answer took.
export function usePoll<T>(key: string, ask: (signal: AbortSignal) => Promise<T>, interval_ms: number, rest = 0): Polled<T> {
  const [state, setState] = useState<{ key: string; value?: T; problem?: Problem; at: number }>({ key, at: 0 });
  const askNow = useRef(ask);
  askNow.current = ask;
  const wake = useRef<() => void>(() => undefined);

  useEffect(() => {
    const controller = new AbortController();
    let timer: number | undefined;
    let busy = false;
    let again = false;

    const round = async () => {
      window.clearTimeout(timer);
      if (busy) {
        again = true;
        return;
      }
      busy = true;
      const begin = performance.now();
      try {
        const value = await askNow.current(controller.signal);
        if (!controller.signal.aborted) setState({ key, value, at: Date.now() });
      } catch (error) {
        if (!controller.signal.aborted) setState((old) => ({ ...old, key, problem: asProblem(error) }));
      }
      busy = false;
      if (controller.signal.aborted) return;
      if (again) {
        again = false;
        void round();
      } else if (interval_ms > 0 && !document.hidden) {
        timer = window.setTimeout(() => void round(), Math.max(interval_ms, rest * (performance.now() - begin)));
      }
    };
    const shown = () => {
      if (!document.hidden && interval_ms > 0) void round();
    };
    wake.current = () => void round();
    document.addEventListener("visibilitychange", shown);
    void round();
    return () => {
      controller.abort();
      window.clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [key, interval_ms]);

  const refresh = useCallback(() => wake.current(), []);
  const current = state.key === key ? state : { value: undefined, problem: undefined, at: 0 };
  return { value: current.value, problem: current.problem, at: current.at, refresh };
}
