// SPDX-License-Identifier: Apache-2.0
import { everyPage } from "./api/every_page";
import { usePoll } from "./api/use_poll";
import { countText } from "./pages/alerts/alert_words";
import { Badge } from "./parts/badge";
import { Link } from "./parts/link";

const ALERTS_MS = 5000;

// How many alerts ask for attention; nothing where none does.
export function AlertCount() {
  const alerts = usePoll("alert-count", (signal) => everyPage("GET /alerts", { query: { state: "firing" }, signal }), ALERTS_MS);
  const shouting = (alerts.value?.items ?? []).filter((alert) => alert.needs_attention);
  const critical = shouting.some((alert) => alert.severity === "critical");
  return (
    <span role="status" class="alert-count">
      {shouting.length > 0 && <Link href="/alerts"><Badge tone={critical ? "bad" : "warn"}>{countText(shouting.length)}</Badge></Link>}
    </span>
  );
}
