// SPDX-License-Identifier: Apache-2.0
import type { AuditEntry } from "../../api/generated";
import { call } from "../../api/call";
import { usePoll } from "../../api/use_poll";
import { absoluteText } from "../../format/time";
import { Badge } from "../../parts/badge";
import { DataTable } from "../../parts/data_table";
import { Empty } from "../../parts/empty";
import { Loaded } from "../../parts/loaded";
import { Panel } from "../../parts/panel";

const AUDIT_MS = 3000;
const SHOWN = 200;

// Who changed what.
export function Audit() {
  const audit = usePoll("audit", (signal) => call("GET /audit", { query: { limit: SHOWN }, signal }), AUDIT_MS);
  return (
    <Panel title="Who changed what" aside={<span class="muted">newest {SHOWN}</span>}>
      <Loaded from={audit}>
        {({ items }) => items.length === 0
          ? <Empty title="Nothing has been changed yet." />
          : (
            <DataTable caption="Audit" rows={items} rowKey={(entry) => entry.sequence} columns={[
              { title: "Time", cell: (entry) => <time class="nowrap" dateTime={entry.time}>{absoluteText(entry.time)}</time> },
              { title: "User", cell: (entry) => <><strong>{entry.user || "nobody"}</strong> <span class="muted">{entry.method}, {entry.origin}</span></> },
              { title: "What", cell: (entry) => <span class="wrap">{entry.summary}</span> },
              { title: "Result", cell: (entry) => <Badge tone={entry.status < 400 ? "good" : "bad"}>{resultOf(entry.status)}</Badge> },
              { title: "Details", cell: (entry) => <BeforeAndAfter entry={entry} /> },
            ]} />
          )}
      </Loaded>
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
