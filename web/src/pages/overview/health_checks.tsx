// SPDX-License-Identifier: Apache-2.0
import type { Health } from "../../api/generated";
import { durationText } from "../../format/time";
import { Badge, type Tone } from "../../parts/badge";

const TONES: Record<Health["status"], Tone> = { ok: "good", warning: "warn", failed: "bad" };

// Each check in words; what is not well comes first, with what to do.
export function HealthChecks({ health }: { health: Health }) {
  const order = ["failed", "warning", "ok"];
  const checks = [...health.checks].sort((a, b) => order.indexOf(a.status) - order.indexOf(b.status));
  return (
    <>
      <ul class="checks">
        {checks.map((check) => (
          <li key={check.name}>
            <Badge tone={TONES[check.status]}>{check.status}</Badge>
            <div>
              <strong>{check.name}</strong> <span class="muted">{check.detail}</span>
              {check.fix && <p class="fix">{check.fix}</p>}
            </div>
          </li>
        ))}
      </ul>
      <p class="muted">
        Up for {durationText(health.uptime_seconds)}, start {health.start_count}
        {health.grace_seconds_left > 0 && <>, grace period for another {health.grace_seconds_left} s</>}
      </p>
    </>
  );
}
