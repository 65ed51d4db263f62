// SPDX-License-Identifier: Apache-2.0
import type { Export } from "../../api/generated";
import type { ComponentChildren } from "preact";
import { DataList } from "../../list/data_list";
import { rowsOf } from "../../list/source";
import { Badge } from "../../parts/badge";
import { useMay } from "../../session";
import { squashText } from "./export_rules";

interface Props {
  exports: Export[];
  empty: ComponentChildren;
  onEdit: (of: Export) => void;
  onRemove: (of: Export) => void;
}

export function ExportTable({ exports, empty, onEdit, onRemove }: Props) {
  const may = useMay();
  return (
    <DataList caption="Exports" from={rowsOf("exports", exports)} rowKey={(row) => row.id} sort="path" empty={empty} columns={[
      { title: "Path", value: (row) => row.path, cell: (row) => (
        <>
          <code class="wrap strong">{row.path}</code>{" "}
          {!row.directory_exists && <Badge tone="warn" title="Clients can mount it once the directory exists">no such directory</Badge>}
        </>
      ) },
      { title: "Clients", value: (row) => row.clients.join(" ") || "everybody", cell: (row) => row.clients.length ? row.clients.map((client) => <code key={client} class="chip">{client}</code>) : <Badge tone="warn">everybody</Badge> },
      { title: "Access", value: accessText, cell: (row) => <Badge tone={row.read_only ? "read" : "write"}>{accessText(row)}</Badge> },
      { title: "Users", value: (row) => squashText(row) + (row.insecure ? " insecure" : ""), cell: (row) => (
        <>
          {squashText(row)}{" "}
          {row.insecure && <Badge tone="warn" title="Accepts requests from any port: any user of a client can claim to be another user">insecure</Badge>}
        </>
      ) },
      { title: "From", value: sourceText, cell: (row) => <span class="muted">{sourceText(row)}</span> },
      { title: "Actions", quiet: true, cell: (row) => (
        <div class="actions actions-end">
          {may("PUT /exports/{id}") && <button type="button" class="button" aria-label={`Edit ${row.path}`} onClick={() => onEdit(row)}>Edit…</button>}
          {may("DELETE /exports/{id}") && <button type="button" class="button" aria-label={`Remove ${row.path}`} onClick={() => onRemove(row)}>Remove…</button>}
        </div>
      ) },
    ]} />
  );
}

function accessText(row: Export): string {
  return row.read_only ? "read only" : "read and write";
}

function sourceText(row: Export): string {
  return row.source === "file" ? "configuration file" : "this console";
}
