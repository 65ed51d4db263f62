// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface Props {
  title: string;
  // Beside the title: a count, a unit, buttons.
  aside?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}

// A titled part of a page.
export function Panel({ title, aside, class: name = "", children }: Props) {
  const id = useId();
  return (
    <section class={`panel ${name}`} aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id}>{title}</h2>
        {aside && <div class="panel-aside">{aside}</div>}
      </header>
      {children}
    </section>
  );
}
