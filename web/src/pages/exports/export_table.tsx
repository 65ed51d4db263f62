// SPDX-License-Identifier: Apache-2.0
import type { Export } from "../../api/generated";
import { Badge } from "../../parts/badge";
import { DataTable } from "../../parts/data_table";
import { useMay } from "../../session";
import { squashText } from "./export_rules";

interface Props {
  exports: Export[];
  onEdit: (of: Export) => void;
  onRemove: (of: Export) => void;
}

export function ExportTable({ exports, onEdit, onRemove }: Props) {
  const may = useMay();
  return (
    <DataTable caption="Exports" rows={exports} rowKey={(row) => row.id} columns={[
      { title: "Path", cell: (row) => (
        <>
          <code class="wrap strong">{row.path}</code>{" "}
          {!row.directory_exists && <Badge tone="warn" title="Clients get it when the directory is made">no such directory</Badge>}
        </>
      ) },
      { title: "Clients", cell: (row) => row.clients.length ? row.clients.map((client) => <code key={client} class="chip">{client}</code>) : <Badge tone="warn">everybody</Badge> },
      { title: "Access", cell: (row) => row.read_only ? <Badge tone="read">read only</Badge> : <Badge tone="write">read and write</Badge> },
      { title: "Users", cell: (row) => (
        <>
          {squashText(row)}{" "}
          {row.insecure && <Badge tone="warn" title="Requests from every port are served: any user of a client can say he is another">insecure</Badge>}
        </>
      ) },
      { title: "From", cell: (row) => <span class="muted">{row.source === "file" ? "configuration file" : "this console"}</span> },
      { title: "Actions", quiet: true, cell: (row) => (
        <div class="actions actions-end">
          {may("PUT /exports/{id}") && <button type="button" class="button" aria-label={`Edit ${row.path}`} onClick={() => onEdit(row)}>Edit…</button>}
          {may("DELETE /exports/{id}") && <button type="button" class="button" aria-label={`Remove ${row.path}`} onClick={() => onRemove(row)}>Remove…</button>}
        </div>
      ) },
    ]} />
  );
}
