// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";

export type Theme = "system" | "light" | "dark";
export const THEMES: Theme[] = ["system", "light", "dark"];

const KEY = "pnfsrdma-theme";
const CHANGED = "pnfsrdma-theme";

export function storedTheme(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system"; // Storage is refused: the system's choice it is.
  }
}

// "system" leaves the choice to the style sheet's prefers-color-scheme.
export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function setTheme(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Only not remembered.
  }
  applyTheme(theme);
  window.dispatchEvent(new Event(CHANGED));
}

// A number that changes whenever colours do, by the switch or by the system: canvases draw anew then.
export function useColours(): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const changed = () => setCount((old) => old + 1);
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    window.addEventListener(CHANGED, changed);
    system.addEventListener("change", changed);
    return () => {
      window.removeEventListener(CHANGED, changed);
      system.removeEventListener("change", changed);
    };
  }, []);
  return count;
}

// What a custom property of the style sheet is now, for canvases: "rgb(20, 121, 160)". The property itself would only
// say light-dark(…).
export function colour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.documentElement.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
