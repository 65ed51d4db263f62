// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";

export type Tone = "good" | "warn" | "bad" | "quiet" | "read" | "write";

// A state in a word. The word says it; the colour only helps.
export function Badge({ tone = "quiet", children, title }: { tone?: Tone; children: ComponentChildren; title?: string }) {
  return <span class={`badge badge-${tone}`} title={title}>{children}</span>;
}
