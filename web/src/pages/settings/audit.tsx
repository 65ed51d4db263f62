// SPDX-License-Identifier: Apache-2.0
import type { AuditEntry } from "../../api/generated";
import { absoluteText } from "../../format/time";
import { DataList } from "../../list/data_list";
import { listOf } from "../../list/source";
import { Badge } from "../../parts/badge";
import { Empty } from "../../parts/empty";
import { Panel } from "../../parts/panel";

const AUDIT_MS = 3000;

// Audit log.
export function Audit() {
  return (
    <Panel title="Audit log">
      <DataList caption="Audit" from={listOf("GET /audit", AUDIT_MS)} rowKey={(entry) => entry.sequence} sort="-time"
        empty={<Empty title="No changes yet." />} columns={[
          { title: "Time", value: (entry) => entry.time, cell: (entry) => <time class="nowrap" dateTime={entry.time}>{absoluteText(entry.time)}</time> },
          { title: "User", value: (entry) => `${entry.user || "nobody"} ${entry.method} ${entry.origin}`, cell: (entry) =>
            <><strong>{entry.user || "nobody"}</strong> <span class="muted">{entry.method}, {entry.origin}</span></> },
          { title: "What", value: (entry) => entry.summary, cell: (entry) => <span class="wrap">{entry.summary}</span> },
          { title: "Result", value: (entry) => resultOf(entry.status), cell: (entry) =>
            <Badge tone={entry.status < 400 ? "good" : "bad"}>{resultOf(entry.status)}</Badge> },
          { title: "Details", cell: (entry) => <BeforeAndAfter entry={entry} /> },
        ]} />
    </Panel>
  );
}

function resultOf(status: number): string {
  if (status < 400) return "done";
  return status === 503 ? "unknown" : status === 401 || status === 403 ? "refused" : "failed";
}

// The call as the API has it: for who compares it with other logs.
function BeforeAndAfter({ entry }: { entry: AuditEntry }) {
  return (
    <details>
      <summary>Show</summary>
      <pre class="shell-line" tabIndex={0} aria-label="Before and after">{`${entry.action} ${entry.subject}\nbefore ${JSON.stringify(entry.before, null, 1)}\nafter  ${JSON.stringify(entry.after, null, 1)}`}</pre>
    </details>
  );
}
