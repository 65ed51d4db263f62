// SPDX-License-Identifier: Apache-2.0
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

// The width of an element in CSS pixels, kept up to date; 0 before it is laid out.
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!element.current) return undefined;
    const observer = new ResizeObserver((entries) => setWidth(Math.floor(entries[0]?.contentRect.width ?? 0)));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return width;
}
