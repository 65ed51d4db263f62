// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";

// Nothing here yet: why, and what the next step is.
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <div class="empty-next">{children}</div>}
    </div>
  );
}
