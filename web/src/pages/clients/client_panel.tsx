// SPDX-License-Identifier: Apache-2.0
import type { Client } from "../../api/generated";
import { DataTable } from "../../parts/data_table";
import { Facts } from "../../parts/facts";
import { Panel } from "../../parts/panel";
import { clientName } from "./client_words";
import { LayoutTable } from "./layout_table";

// One client: its sessions, its connections to devices, its layouts.
export function ClientPanel({ client }: { client: Client }) {
  return (
    <Panel title={clientName(client)}>
      <Facts of={[
        ["Mounted at", client.mount_point === null ? <span class="muted">unknown</span> : <code class="wrap">{client.mount_point}</code>],
        ["Id", <code>{client.id}</code>],
        ["Owner", <code class="wrap">{client.owner}</code>],
        ["User id", String(client.uid)],
        ["Delegations", String(client.delegations)],
        ["Revoked, not yet freed", String(client.revoked_states)],
      ]} />
      <h3>Sessions</h3>
      {client.sessions.length === 0 ? <p class="muted">None.</p> : (
        <DataTable caption="Sessions" rows={client.sessions} rowKey={(session) => session.id} columns={[
          { title: "Session", cell: (session) => <code>{session.id.slice(0, 12)}…</code> },
          { title: "From", cell: (session) => session.peers.map((peer) => <code key={peer} class="chip">{peer}</code>) },
          { title: "Calls by", cell: (session) => session.transport },
          { title: "Callbacks", cell: (session) => session.callbacks },
          { title: "Slots", numeric: true, cell: (session) => session.slots },
        ]} />
      )}
      <h3>Connections to devices</h3>
      {client.bricks.length === 0 ? <p class="muted">None: its data goes through the server.</p> : (
        <DataTable caption="Connections to devices" rows={client.bricks} rowKey={(brick) => `${brick.brick} ${brick.peer}`} columns={[
          { title: "Device", cell: (brick) => <code>{brick.brick.slice(0, 8)}…</code> },
          { title: "From", cell: (brick) => <code>{brick.peer}</code> },
          { title: "Data by", cell: (brick) => <code class="chip">{brick.transport}</code> },
          { title: "Generation", numeric: true, cell: (brick) => brick.connection },
          { title: "Handles", numeric: true, cell: (brick) => brick.grants },
        ]} />
      )}
      <h3>Layouts</h3>
      <LayoutTable name="layouts" client={client.id} empty="This client holds no layout and can reach no memory." />
    </Panel>
  );
}
