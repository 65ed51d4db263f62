// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Alert } from "../../api/generated";
import { call } from "../../api/call";
import { asProblem } from "../../api/problem";
import { DataList } from "../../list/data_list";
import { listOf } from "../../list/source";
import { notify } from "../../notices";
import { Badge } from "../../parts/badge";
import { Empty } from "../../parts/empty";
import { Link } from "../../parts/link";
import { PageHead } from "../../parts/page_head";
import { Panel } from "../../parts/panel";
import { Time } from "../../parts/time";
import { useMay } from "../../session";
import { AcknowledgeAlert } from "./acknowledge_alert";
import { SEVERITY_TONES, stateOf, stateTone } from "./alert_words";

const ALERTS_MS = 3000;

// What is not as it should be, and what was not in the last week.
export function Alerts() {
  const [acknowledging, setAcknowledging] = useState<Alert | null>(null);
  const [changes, setChanges] = useState(0);
  const may = useMay();
  const changed = () => setChanges((count) => count + 1);
  return (
    <>
      <PageHead title="Alerts" lead="The alert rules shipped for Prometheus, evaluated by the server itself.">
        {may("GET /webhook") && <Link href="/settings/webhook" class="button">Webhook</Link>}
      </PageHead>
      <Panel title="Pending, firing, and resolved in the last seven days">
        <DataList caption="Alerts" from={listOf("GET /alerts", ALERTS_MS)} rowKey={(alert) => alert.id} sort="-since" changes={changes}
          empty={<Empty title="No alerts, now or in the last seven days." />} columns={[
            { title: "State", value: stateOf, cell: (alert) => <Badge tone={stateTone(alert)}>{stateOf(alert)}</Badge> },
            { title: "Severity", value: (alert) => alert.severity, cell: (alert) => <Badge tone={alert.needs_attention ? SEVERITY_TONES[alert.severity] : "quiet"}>{alert.severity}</Badge> },
            { title: "What", value: (alert) => `${alert.summary} ${alert.rule} ${alert.subject}`, cell: (alert) => <What alert={alert} /> },
            { title: "Since", value: (alert) => alert.since, cell: (alert) => <Time at={alert.since} /> },
            { title: "Resolved", value: (alert) => alert.resolved ?? "", cell: (alert) =>
              alert.resolved ? <Time at={alert.resolved} /> : <span class="muted">no</span> },
            { title: "Acknowledged", value: (alert) => alert.acknowledged?.user ?? "", cell: (alert) => <Acknowledged alert={alert} /> },
            { title: "Actions", quiet: true, cell: (alert) =>
              <Actions alert={alert} onAcknowledge={() => setAcknowledging(alert)} onChanged={changed} /> },
          ]} />
      </Panel>
      {acknowledging && <AcknowledgeAlert alert={acknowledging} onClose={() => {
        setAcknowledging(null);
        changed();
      }} />}
    </>
  );
}

function What({ alert }: { alert: Alert }) {
  return (
    <>
      <strong class="wrap">{alert.summary}</strong>
      <p class="hint wrap">{alert.description} <code class="wrap">{alert.rule}</code></p>
    </>
  );
}

function Acknowledged({ alert }: { alert: Alert }) {
  const seen = alert.acknowledged;
  if (!seen) return <span class="muted">no</span>;
  return (
    <>
      <strong>{seen.user}</strong> <span class="muted"><Time at={seen.time} />{seen.until && <>, until <Time at={seen.until} absolute /></>}</span>
      {seen.comment && <p class="hint wrap">{seen.comment}</p>}
    </>
  );
}

function Actions({ alert, onAcknowledge, onChanged }: { alert: Alert; onAcknowledge: () => void; onChanged: () => void }) {
  const may = useMay();
  if (alert.state !== "firing" || !may("POST /alerts/{id}/acknowledgement")) return null;
  if (alert.needs_attention) {
    return <button type="button" class="button" aria-label={`Acknowledge: ${alert.summary}`} onClick={onAcknowledge}>Acknowledge</button>;
  }
  const takeBack = async () => {
    try {
      await call("DELETE /alerts/{id}/acknowledgement", { path: { id: alert.id } });
    } catch (error) {
      notify(asProblem(error).message, "bad");
    }
    onChanged();
  };
  return <button type="button" class="button" aria-label={`Unacknowledge: ${alert.summary}`} onClick={() => void takeBack()}>Unacknowledge</button>;
}
