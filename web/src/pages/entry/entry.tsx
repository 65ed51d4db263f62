// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { Mark } from "../../parts/mark";

// The frame of the pages before the console: one column, one thing to do.
export function Entry({ title, children }: { title: string; children: ComponentChildren }) {
  useEffect(() => {
    document.title = `${title} – pnfsrdma`;
  }, [title]);
  return (
    <main class="entry">
      <p class="brand"><Mark /><span>pnfsrdma</span></p>
      <h1>{title}</h1>
      {children}
      <p class="muted entry-host">{location.host}</p>
    </main>
  );
}
