// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { go } from "../route";

interface Props {
  href: string;
  class?: string;
  current?: boolean;
  children: ComponentChildren;
}

// A link inside the console. With a modifier key the browser does what it always does.
export function Link({ href, class: name, current, children }: Props) {
  const follow = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(href);
  };
  return <a href={href} class={name} aria-current={current ? "page" : undefined} onClick={follow}>{children}</a>;
}
