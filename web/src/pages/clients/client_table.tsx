// SPDX-License-Identifier: Apache-2.0
import type { Client } from "../../api/generated";
import { bytesText, countText } from "../../format/number";
import { durationText } from "../../format/time";
import { Badge } from "../../parts/badge";
import { DataTable } from "../../parts/data_table";
import { useMay } from "../../session";
import { callbacks, clientName, transports } from "./client_words";

interface Props {
  clients: Client[];
  chosen: string | null;
  onChoose: (id: string) => void;
  onExpel: (client: Client) => void;
}

export function ClientTable({ clients, chosen, onChoose, onExpel }: Props) {
  const may = useMay();
  return (
    <DataTable caption="Clients" rows={clients} rowKey={(client) => client.id}
      rowClass={(client) => (client.id === chosen ? "selected" : "")} columns={[
        { title: "Client", cell: (client) => (
          <button type="button" class="button button-link" aria-expanded={client.id === chosen} onClick={() => onChoose(client.id)}>
            {clientName(client)}
          </button>
        ) },
        { title: "Mounted at", cell: (client) => client.mount_point === null
          ? <span class="muted">not told</span> : <code class="wrap">{client.mount_point}</code> },
        { title: "State", cell: (client) => <ClientState client={client} /> },
        { title: "Data by", cell: (client) => transports(client).map((name) => <code key={name} class="chip">{name}</code>) },
        { title: "Lease", numeric: true, cell: (client) => durationText(client.lease_seconds_left) },
        { title: "Opens", numeric: true, cell: (client) => countText(client.opens) },
        { title: "Locks", numeric: true, cell: (client) => countText(client.locks) },
        { title: "Layouts", numeric: true, cell: (client) => countText(client.layouts) },
        { title: "Reachable", numeric: true, cell: (client) => bytesText(client.bytes) },
        { title: "Writable", numeric: true, cell: (client) => bytesText(client.writable_bytes) },
        { title: "Actions", quiet: true, cell: (client) => may("DELETE /clients/{id}") &&
          <button type="button" class="button" aria-label={`Expel ${clientName(client)}`} onClick={() => onExpel(client)}>Expel…</button> },
      ]} />
  );
}

function ClientState({ client }: { client: Client }) {
  if (!client.confirmed) return <Badge>not confirmed</Badge>;
  if (client.lease_seconds_left <= 0) return <Badge tone="bad">lease over</Badge>;
  if (callbacks(client) !== "up") return <Badge tone="warn" title="It cannot be asked to give memory back; it is revoked instead">no callbacks</Badge>;
  return <Badge tone="good">well</Badge>;
}
