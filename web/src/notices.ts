// SPDX-License-Identifier: Apache-2.0
// Short sentences about what was done, shown (and spoken) for a while at the foot of the page.
export interface Notice {
  id: number;
  text: string;
  tone: "good" | "bad";
}

const SHOWN_MS = 6000;
let notices: Notice[] = [];
let count = 0;
const listeners = new Set<(notices: Notice[]) => void>();

function change(next: Notice[]): void {
  notices = next;
  for (const listener of listeners) listener(notices);
}

export function notify(text: string, tone: Notice["tone"] = "good"): void {
  const notice = { id: ++count, text, tone };
  change([...notices.slice(-3), notice]);
  window.setTimeout(() => dismiss(notice.id), SHOWN_MS);
}

export function dismiss(id: number): void {
  change(notices.filter((notice) => notice.id !== id));
}

export function watchNotices(listener: (notices: Notice[]) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
