// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Layout } from "../../api/generated";
import { bytesText, countText } from "../../format/number";
import { durationText } from "../../format/time";
import { DataList } from "../../list/data_list";
import { listOf } from "../../list/source";
import { Badge } from "../../parts/badge";
import type { Column } from "../../parts/data_table";
import { Link } from "../../parts/link";
import { useMay } from "../../session";
import { RevokeLayout } from "../exposure/revoke_layout";
import { clientName } from "./client_words";

const LAYOUTS_MS = 1000;

interface Props {
  // Of this client only; else of all.
  client?: string;
  // Of the list, in the address.
  name?: string;
  empty: string;
}

// Layouts, with a button each to take it away.
export function LayoutTable({ client, name, empty }: Props) {
  const may = useMay();
  const [revoked, setRevoked] = useState<Layout | null>(null);
  const [changes, setChanges] = useState(0);
  const holder: Column<Layout> = {
    title: "Client", value: holderOf, cell: (layout) => <Link href={`/clients?client=${layout.client}`}>{holderOf(layout)}</Link>,
  };
  return (
    <>
      <DataList caption="Layouts" name={name} from={listOf("GET /layouts", LAYOUTS_MS, { query: { client } })} changes={changes}
        rowKey={(layout) => layout.id} sort="file" empty={<p class="muted">{empty}</p>} columns={[
          { title: "File", value: fileOf, cell: (layout) => <code class="wrap">{fileOf(layout)}</code> },
          ...(client ? [] : [holder]),
          { title: "Rights", value: (layout) => layout.iomode, cell: (layout) =>
            <Badge tone={layout.iomode === "read-write" ? "write" : "read"}>{layout.iomode}</Badge> },
          { title: "State", value: (layout) => layout.state, cell: (layout) => layout.state },
          { title: "Handles", numeric: true, value: (layout) => layout.grants, cell: (layout) => countText(layout.grants) },
          { title: "Reachable", numeric: true, unit: "bytes", value: (layout) => layout.bytes, cell: (layout) => bytesText(layout.bytes) },
          { title: "Age", numeric: true, unit: "seconds", value: (layout) => layout.age_seconds, cell: (layout) => durationText(layout.age_seconds) },
          { title: "Actions", quiet: true, cell: (layout) => may("DELETE /layouts/{id}") &&
            <button type="button" class="button" aria-label={`Revoke ${layout.path ?? layout.id}`}
              onClick={() => setRevoked(layout)}>Revoke…</button> },
        ]} />
      {revoked && <RevokeLayout layout={revoked} onChanged={() => setChanges((old) => old + 1)} onClose={() => setRevoked(null)} />}
    </>
  );
}

function fileOf(layout: Layout): string {
  return layout.path ?? `inode ${layout.inode}`;
}

function holderOf(layout: Layout): string {
  return clientName({ name: layout.client_name, id: layout.client });
}
