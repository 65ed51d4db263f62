// SPDX-License-Identifier: Apache-2.0
import { percent } from "../../format/number";
import type { Quota } from "../../api/generated";

interface Props {
  label: string;
  used: number;
  soft: number;
  hard: number;
  state: Quota["space_state"];
  text: (value: number) => string;
}

// What is used of a limit, with a mark at the soft one. The numbers stand below it; the bar is for the eye.
export function LimitBar({ label, used, soft, hard, state, text }: Props) {
  const whole = hard || soft;
  if (whole === 0) return <>{text(used)}</>;
  const limits = hard === 0 ? `${text(soft)} soft` : text(hard) + (soft > 0 ? `, soft ${text(soft)}` : "");
  const wide = (value: number) => `${Math.min(100, (value / whole) * 100)}%`;
  return (
    <div class="limit">
      <div class={`limit-bar limit-${state}`} role="img" aria-label={`${label}: ${percent(used, whole)} of ${text(whole)}`}>
        <span class="limit-used" style={{ width: wide(used) }} />
        {soft > 0 && soft < whole && <span class="limit-soft" style={{ left: wide(soft) }} />}
      </div>
      <span>{text(used)}</span> <span class="muted">of {limits}</span>
    </div>
  );
}
