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
          ? <Empty title="Nothing was changed yet." />
          : (
            <DataTable caption="Audit" rows={items} rowKey={(entry) => entry.sequence} columns={[
              { title: "Time", cell: (entry) => <time class="nowrap" dateTime={entry.time}>{absoluteText(entry.time)}</time> },
              { title: "Who", cell: (entry) => <><strong>{entry.user || "nobody"}</strong> <span class="muted">{entry.method}, {entry.origin}</span></> },
              { title: "What", cell: (entry) => <><code class="strong">{entry.action}</code> <code class="wrap muted">{entry.subject}</code></> },
              { title: "Answer", cell: (entry) => <Badge tone={entry.status < 400 ? "good" : "bad"}>{entry.status}</Badge> },
              { title: "Before and after", cell: (entry) => <BeforeAndAfter entry={entry} /> },
            ]} />
          )}
      </Loaded>
    </Panel>
  );
}

function BeforeAndAfter({ entry }: { entry: AuditEntry }) {
  if (entry.before === null && entry.after === null) return <span class="muted">–</span>;
  return (
    <details>
      <summary>Show</summary>
      <pre class="shell-line" tabIndex={0} aria-label="Before and after">{`before ${JSON.stringify(entry.before, null, 1)}\nafter  ${JSON.stringify(entry.after, null, 1)}`}</pre>
    </details>
  );
}
