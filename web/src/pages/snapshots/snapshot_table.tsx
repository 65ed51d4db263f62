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
  onRemove: (of: Snapshot) => void;
}

export function SnapshotTable({ snapshots, empty, onRemove }: Props) {
  const may = useMay();
  return (
    <DataList caption="Snapshots" from={rowsOf("snapshots", snapshots)} rowKey={(row) => row.id} sort="-taken" empty={empty} columns={[
      { title: "Name", value: (row) => row.name, cell: (row) => <code class="wrap strong">{row.name}</code> },
      { title: "Taken", value: (row) => row.created, cell: (row) => <Time at={row.created} absolute /> },
      { title: "State", value: (row) => row.state, cell: (row) => <Badge tone={row.state === "ready" ? "good" : "warn"}>{row.state}</Badge> },
      { title: "Actions", quiet: true, cell: (row) => (
        <div class="actions actions-end">
          {may("DELETE /snapshots/{id}") && row.state === "ready" && (
            <button type="button" class="button" aria-label={`Remove ${row.name}`} onClick={() => onRemove(row)}>Remove…</button>
          )}
        </div>
      ) },
    ]} />
  );
}
