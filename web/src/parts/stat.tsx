// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import type { Quantity } from "../format/number";

// One number with its unit, large.
export function Stat({ label, value, note, tone }:
  { label: string; value: Quantity; note?: ComponentChildren; tone?: string }) {
  return (
    <div class={`stat ${tone ? `stat-${tone}` : ""}`}>
      <dt>{label}</dt>
      <dd>
        <span class="stat-digits">{value.digits}</span> <span class="stat-unit">{value.unit}</span>
        {note && <span class="stat-note">{note}</span>}
      </dd>
    </div>
  );
}
