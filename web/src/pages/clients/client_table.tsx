// SPDX-License-Identifier: Apache-2.0
import type { Client } from "../../api/generated";
import { bytesText, countText } from "../../format/number";
import { durationText } from "../../format/time";
import { DataList } from "../../list/data_list";
import { listOf } from "../../list/source";
import { Badge, type Tone } from "../../parts/badge";
import { Link } from "../../parts/link";
import { Empty } from "../../parts/empty";
import { useMay } from "../../session";
import { callbacks, clientName, transports } from "./client_words";

const CLIENTS_MS = 1000;

interface Props {
  chosen: string | null;
  onChoose: (id: string) => void;
  onExpel: (client: Client) => void;
  changes: number;
}

export function ClientTable({ chosen, onChoose, onExpel, changes }: Props) {
  const may = useMay();
  return (
    <DataList caption="Clients" from={listOf("GET /clients", CLIENTS_MS)} rowKey={(client) => client.id} sort="client" changes={changes}
      empty={<Empty title="No client has mounted this server."><p>A client appears here when it mounts an export.</p><Link href="/exports" class="button">See the exports</Link></Empty>}
      rowClass={(client) => (client.id === chosen ? "selected" : "")} columns={[
        { title: "Client", value: clientName, cell: (client) => (
          <button type="button" class="button button-link" aria-expanded={client.id === chosen} onClick={() => onChoose(client.id)}>
            {clientName(client)}
          </button>
        ) },
        { title: "Mounted at", value: (client) => client.mount_point, cell: (client) => client.mount_point === null
          ? <span class="muted">unknown</span> : <code class="wrap">{client.mount_point}</code> },
        { title: "State", value: (client) => stateOf(client).word, cell: (client) => <ClientState client={client} /> },
        { title: "Data by", value: (client) => transports(client).join(" "), cell: (client) => transports(client).map((name) => <code key={name} class="chip">{name}</code>) },
        { title: "Lease", numeric: true, unit: "seconds", value: (client) => client.lease_seconds_left, cell: (client) => durationText(client.lease_seconds_left) },
        { title: "Opens", numeric: true, value: (client) => client.opens, cell: (client) => countText(client.opens) },
        { title: "Locks", numeric: true, value: (client) => client.locks, cell: (client) => countText(client.locks) },
        { title: "Layouts", numeric: true, value: (client) => client.layouts, cell: (client) => countText(client.layouts) },
        { title: "Reachable", numeric: true, unit: "bytes", value: (client) => client.bytes, cell: (client) => bytesText(client.bytes) },
        { title: "Writable", numeric: true, unit: "bytes", value: (client) => client.writable_bytes, cell: (client) => bytesText(client.writable_bytes) },
        { title: "Actions", quiet: true, cell: (client) => may("DELETE /clients/{id}") &&
          <button type="button" class="button" aria-label={`Expel ${clientName(client)}`} onClick={() => onExpel(client)}>Expel…</button> },
      ]} />
  );
}

function stateOf(client: Client): { word: string; tone: Tone; title?: string } {
  if (!client.confirmed) return { word: "not confirmed", tone: "quiet" };
  if (client.lease_seconds_left <= 0) return { word: "lease over", tone: "bad" };
  if (callbacks(client) === "up") return { word: "well", tone: "good" };
  return { word: "no callbacks", tone: "warn", title: "The server cannot recall its layouts; it revokes them instead" };
}

function ClientState({ client }: { client: Client }) {
  const { word, tone, title } = stateOf(client);
  return <Badge tone={tone} title={title}>{word}</Badge>;
}
