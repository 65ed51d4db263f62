// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Layout } from "../../api/generated";
import { bytesText, countText } from "../../format/number";
import { durationText } from "../../format/time";
import { Badge } from "../../parts/badge";
import { DataTable } from "../../parts/data_table";
import { useMay } from "../../session";
import { RevokeLayout } from "../exposure/revoke_layout";

// Layouts, with a button each to take it away.
export function LayoutTable({ layouts, onChanged }: { layouts: Layout[]; onChanged: () => void }) {
  const may = useMay();
  const [revoked, setRevoked] = useState<Layout | null>(null);
  const dialog = revoked && <RevokeLayout layout={revoked} onChanged={onChanged} onClose={() => setRevoked(null)} />;
  if (layouts.length === 0) return <><p class="muted">It holds none: it reaches no memory.</p>{dialog}</>;
  return (
    <><DataTable caption="Layouts" rows={layouts} rowKey={(layout) => layout.id} columns={[
      { title: "File", cell: (layout) => <code class="wrap">{layout.path ?? `inode ${layout.inode}`}</code> },
      { title: "Rights", cell: (layout) => <Badge tone={layout.iomode === "read-write" ? "write" : "read"}>{layout.iomode}</Badge> },
      { title: "State", cell: (layout) => layout.state },
      { title: "Handles", numeric: true, cell: (layout) => countText(layout.grants) },
      { title: "Reachable", numeric: true, cell: (layout) => bytesText(layout.bytes) },
      { title: "Age", numeric: true, cell: (layout) => durationText(layout.age_seconds) },
      { title: "Actions", quiet: true, cell: (layout) => may("DELETE /layouts/{id}") &&
        <button type="button" class="button" aria-label={`Revoke ${layout.path ?? layout.id}`}
          onClick={() => setRevoked(layout)}>Revoke…</button> },
    ]} />{dialog}</>
  );
}
