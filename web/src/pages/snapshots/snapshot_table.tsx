// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import type { Snapshot } from "../../api/generated";
import { DataList } from "../../list/data_list";
import { rowsOf } from "../../list/source";
import { Badge } from "../../parts/badge";
import { Time } from "../../parts/time";
import { useMay } from "../../session";

interface Props {
  snapshots: Snapshot[];
  empty: ComponentChildren;
  onPin: (of: Snapshot) => void;
  onRemove: (of: Snapshot) => void;
}

export function SnapshotTable({ snapshots, empty, onPin, onRemove }: Props) {
  const may = useMay();
  return (
    <DataList caption="Snapshots" from={rowsOf("snapshots", snapshots)} rowKey={(row) => row.id} sort="-taken" empty={empty} columns={[
      { title: "Name", value: (row) => row.name, cell: (row) => <code class="wrap strong">{row.name}</code> },
      { title: "Schedule", value: (row) => row.schedule ?? "", cell: (row) => row.schedule ?? <span class="muted">none</span> },
      { title: "Taken", value: (row) => row.created, cell: (row) => <Time at={row.created} absolute /> },
      { title: "State", value: (row) => row.state, cell: (row) => <Badge tone={row.state === "ready" ? "good" : "warn"}>{row.state}</Badge> },
      { title: "Pinned", value: (row) => row.pinned ? "pinned" : "", cell: (row) => row.pinned && <Badge title="It cannot be removed.">pinned</Badge> },
      { title: "Actions", quiet: true, cell: (row) => (
        <div class="actions actions-end">
          {may("PATCH /snapshots/{id}") && row.state === "ready" && (
            <button type="button" class="button" aria-label={`${row.pinned ? "Unpin" : "Pin"} ${row.name}`} onClick={() => onPin(row)}>{row.pinned ? "Unpin" : "Pin"}</button>
          )}
          {may("DELETE /snapshots/{id}") && row.state === "ready" && !row.pinned && (
            <button type="button" class="button" aria-label={`Remove ${row.name}`} onClick={() => onRemove(row)}>Remove…</button>
          )}
        </div>
      ) },
    ]} />
  );
}
