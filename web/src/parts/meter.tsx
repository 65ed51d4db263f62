// SPDX-License-Identifier: Apache-2.0
import { percent } from "../format/number";

interface Part {
  label: string;
  value: number;
  tone: "data" | "held";
}

// How a whole is divided. The numbers stand beside it; the bar is for the eye.
export function Meter({ label, parts, whole }: { label: string; parts: Part[]; whole: number }) {
  const text = parts.map((part) => `${part.label} ${percent(part.value, whole)}`).join(", ");
  return (
    <div class="meter" role="img" aria-label={`${label}: ${text}`}>
      {parts.map((part) => part.value > 0 && (
        <span key={part.label} class={`meter-${part.tone}`}
          style={{ width: `${whole > 0 ? Math.min(100, (part.value / whole) * 100) : 0}%` }} />
      ))}
    </div>
  );
}
