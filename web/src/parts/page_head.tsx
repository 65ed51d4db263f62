// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

// The page's name, one sentence about it, and what can be begun here.
export function PageHead({ title, lead, children }: { title: string; lead?: string; children?: ComponentChildren }) {
  useEffect(() => {
    document.title = `${title} – pnfsrdma`;
  }, [title]);
  return (
    <div class="page-head">
      <div>
        <h1 id="page-title" tabIndex={-1}>{title}</h1>
        {lead && <p class="lead">{lead}</p>}
      </div>
      {children && <div class="actions">{children}</div>}
    </div>
  );
}
