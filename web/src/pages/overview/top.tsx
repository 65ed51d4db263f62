// SPDX-License-Identifier: Apache-2.0
import type { Top as Busiest } from "../../api/generated";
import { bytesPerSecond, perSecond, quantityText } from "../../format/number";
import { DataTable } from "../../parts/data_table";
import { Link } from "../../parts/link";
import { Panel } from "../../parts/panel";

type Client = Busiest["clients"][number];

const speed = (value: number) => quantityText(bytesPerSecond(value));
const often = (value: number) => quantityText(perSecond(value));

// Straight to the devices and through the server; what is not known is no zero.
function bytesCell(direct: number | null, server: number) {
  return <>{speed((direct ?? 0) + server)}{direct === null && <span class="muted"> via server</span>}</>;
}

// Who and what keeps the server busy now, ten of each at most.
export function Top({ top }: { top: Busiest }) {
  return (
    <div class="columns">
      <Panel title="Busiest clients" aside={<span class="muted">last minute</span>}>
        {top.clients.length === 0 ? <p class="muted">No client was active.</p> : (
          <DataTable<Client> caption="Busiest clients" rows={top.clients} rowKey={(row) => row.id} columns={[
            { title: "Client", cell: (row) => row.id === "others" ? "others" : <Link href={`/clients?client=${row.id}`}>{row.name || row.id}</Link> },
            { title: "Read", numeric: true, cell: (row) => bytesCell(row.rdma_read_bytes, row.mds_read_bytes) },
            { title: "Written", numeric: true, cell: (row) => bytesCell(row.rdma_write_bytes, row.mds_write_bytes) },
            { title: "NFS", numeric: true, cell: (row) => often(row.operations) },
          ]} />
        )}
      </Panel>
      <Panel title="Busiest files" aside={<span class="muted">by NFS operations, last half minute</span>}>
        {top.files.length === 0 ? <p class="muted">No file was used through the server.</p> : (
          <DataTable caption="Busiest files" rows={top.files} rowKey={(row) => row.inode} columns={[
            { title: "File", cell: (row) => <code class="wrap">{row.path ?? `inode ${row.inode}`}</code> },
            { title: "NFS", numeric: true, cell: (row) => often(row.operations) },
            { title: "Read", numeric: true, cell: (row) => speed(row.mds_read_bytes) },
            { title: "Written", numeric: true, cell: (row) => speed(row.mds_write_bytes) },
          ]} />
        )}
        <p class="hint">Bytes through the server only. The server does not know which file direct I/O belongs to; the mounts do.</p>
      </Panel>
    </div>
  );
}
