// SPDX-License-Identifier: Apache-2.0
import { everyPage } from "../../api/every_page";
import { usePoll } from "../../api/use_poll";
import { Badge } from "../../parts/badge";
import { Link } from "../../parts/link";
import { Panel } from "../../parts/panel";
import { Time } from "../../parts/time";
import { byUrgency, SEVERITY_TONES, stateOf } from "../alerts/alert_words";

const ALERTS_MS = 3000;

// Those that fire; nothing is shown where none does.
export function FiringAlerts() {
  const alerts = usePoll("firing", (signal) => everyPage("GET /alerts", { query: { state: "firing" }, signal }), ALERTS_MS);
  const firing = alerts.value?.items ?? [];
  if (firing.length === 0) return null;
  return (
    <Panel title="Alerts" aside={<Link href="/alerts">All alerts</Link>}>
      <ul class="checks">
        {[...firing].sort(byUrgency).map((alert) => (
          <li key={alert.id}>
            <Badge tone={alert.needs_attention ? SEVERITY_TONES[alert.severity] : "quiet"}>{alert.severity}</Badge>
            <div>
              <strong class="wrap">{alert.summary}</strong> <span class="muted">{!alert.needs_attention && `${stateOf(alert)}, `}<Time at={alert.since} /></span>
              <p class="fix wrap">{alert.description}</p>
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
