// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { setTheme, storedTheme, THEMES } from "../theme";

const WORDS = { system: "Auto", light: "Light", dark: "Dark" };

// One button that goes round: as the system has it, light, dark.
export function ThemeSwitch() {
  const [theme, choose] = useState(storedTheme);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
  return (
    <button type="button" class="button button-plain theme" title={`Colours: ${WORDS[theme]}. Press for ${WORDS[next]}.`}
      aria-label={`Colours: ${WORDS[theme]}`} onClick={() => {
        setTheme(next);
        choose(next);
      }}>
      <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
        <circle cx="8" cy="8" r="6.5" fill="none" stroke="currentColor" stroke-width="1.5" />
        <path d="M8 1.5a6.5 6.5 0 0 1 0 13z" fill="currentColor" />
      </svg>
      <span>{WORDS[theme]}</span>
    </button>
  );
}
