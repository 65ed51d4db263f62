// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";

const TYPING_MS = 300;

// Searches when the typing rests, not at each letter.
export function ListSearch({ label, value, onValue }: { label: string; value: string; onValue: (value: string) => void }) {
  const [text, setText] = useState(value);
  const timer = useRef<number | undefined>(undefined);
  // The address changed by something else: a link, the way back.
  useEffect(() => setText(value), [value]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  return (
    <input type="search" aria-label={label} placeholder="Search" value={text} spellcheck={false} onInput={(event) => {
      const typed = event.currentTarget.value;
      setText(typed);
      window.clearTimeout(timer.current);
      timer.current = window.setTimeout(() => onValue(typed), TYPING_MS);
    }} />
  );
}
