// SPDX-License-Identifier: Apache-2.0
import { useRef, useState } from "preact/hooks";
import type { Problem } from "../api/problem";
import { usePoll } from "../api/use_poll";
import type { ListAddress } from "./list_address";
import { ListWindow, type ListColumn, type View } from "./list_window";

// Where rows come from, part by part.
export interface Source<T> {
  // Another key is another list.
  key: string;
  pages: (signal: AbortSignal) => AsyncIterable<T[]>;
  // All of them, where they need not be read.
  rows?: T[];
  // 0: read when `key` changes only.
  interval_ms: number;
}

export interface Shown<T> {
  // The rows of this page; of the list before it until the first rows are there. None: nothing is there yet.
  view: View<T> | undefined;
  // Still reading: more may come, and better.
  reading: boolean;
  problem: Problem | undefined;
  at: number;
  refresh: () => void;
}

const SHOW_MS = 250;
// A list that takes long to read is read less often.
const REST = 4;

async function nothing(): Promise<undefined> {
  return undefined;
}

// Reads the list through a window of one page, again and again; what is there is shown while the first reading goes on.
export function useView<T>(source: Source<T>, address: ListAddress, columns: ListColumn<T>[],
  rowKey: (row: T) => string | number): Shown<T> {
  const key = JSON.stringify([source.key, address]);
  const [partial, setPartial] = useState<{ key: string; view: View<T> }>();
  const finished = useRef("");
  const last = useRef<{ source: string; view: View<T> } | undefined>(undefined);

  const viewOf = (rows: T[]) => {
    const window = new ListWindow<T>({ columns, rowKey, ...address });
    window.add(rows);
    return window.view();
  };
  const read = async (signal: AbortSignal) => {
    const window = new ListWindow<T>({ columns, rowKey, ...address });
    let shown = 0;
    for await (const rows of source.pages(signal)) {
      window.add(rows);
      if (finished.current !== key && performance.now() - shown > SHOW_MS) {
        shown = performance.now();
        setPartial({ key, view: window.view() });
      }
    }
    finished.current = key;
    setPartial(undefined);
    return window.view();
  };
  const polled = usePoll(source.rows ? "" : key, source.rows ? nothing : read, source.interval_ms, REST);
  if (source.rows) return { view: viewOf(source.rows), reading: false, problem: undefined, at: 0, refresh: polled.refresh };

  const fresh = polled.value ?? (partial?.key === key ? partial.view : undefined);
  if (fresh) last.current = { source: source.key, view: fresh };
  const kept = last.current?.source === source.key ? last.current.view : undefined;
  return {
    view: fresh ?? kept, reading: polled.value === undefined && !polled.problem,
    problem: polled.problem, at: polled.at, refresh: polled.refresh,
  };
}
