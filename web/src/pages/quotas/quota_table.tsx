// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import type { Quota } from "../../api/generated";
import { bytesText } from "../../format/number";
import { DataList } from "../../list/data_list";
import { listOf } from "../../list/source";
import { Badge } from "../../parts/badge";
import { Time } from "../../parts/time";
import { useMay } from "../../session";
import { LimitBar } from "./limit_bar";
import { graceEnds, quotaName, stateWords } from "./quota_words";

const QUOTAS_MS = 3000;

interface Props {
  kind: Quota["kind"] | undefined;
  changes: number;
  empty: ComponentChildren;
  onEdit: (of: Quota) => void;
  onRemove: (of: Quota) => void;
}

const countText = (count: number) => count.toLocaleString("en");

export function QuotaTable({ kind, changes, empty, onEdit, onRemove }: Props) {
  const may = useMay();
  return (
    <DataList caption="Quotas" from={listOf("GET /quotas", QUOTAS_MS, { query: { kind } })} changes={changes} empty={empty}
      rowKey={(row) => `${row.kind} ${row.id}`} sort="-space" columns={[
        { title: "Name", value: quotaName, cell: (row) => <code class="wrap strong">{quotaName(row)}</code> },
        { title: "Kind", value: (row) => `${row.kind} ${row.id}`, cell: (row) => <>{row.kind} <span class="muted">{row.id}</span></> },
        { title: "Space", unit: "bytes", value: (row) => row.space_used_bytes, cell: (row) => (
          <LimitBar label="Space" used={row.space_used_bytes} soft={row.space_soft_bytes} hard={row.space_hard_bytes}
            state={row.space_state} text={bytesText} />
        ) },
        { title: "Inodes", value: (row) => row.inodes_used, cell: (row) => (
          <LimitBar label="Inodes" used={row.inodes_used} soft={row.inodes_soft} hard={row.inodes_hard}
            state={row.inodes_state} text={countText} />
        ) },
        { title: "State", value: (row) => stateWords(row).word, cell: (row) => <QuotaState quota={row} /> },
        { title: "Actions", quiet: true, cell: (row) => (
          <div class="actions actions-end">
            {may("PATCH /quotas/{kind}/{who}") &&
              <button type="button" class="button" aria-label={`Edit ${row.kind} ${quotaName(row)}`} onClick={() => onEdit(row)}>Edit…</button>}
            {may("DELETE /quotas/{kind}/{who}") && removable(row) &&
              <button type="button" class="button" aria-label={`Remove ${row.kind} ${quotaName(row)}`} onClick={() => onRemove(row)}>Remove…</button>}
          </div>
        ) },
      ]} />
  );
}

function removable(row: Quota): boolean {
  return row.kind === "tree" || row.limits_from === "own";
}

function QuotaState({ quota }: { quota: Quota }) {
  const { word, tone, title } = stateWords(quota);
  const ends = graceEnds(quota);
  return (
    <>
      <Badge tone={tone} title={title}>{word}</Badge>
      {quota.limits_from === "default" && <> <span class="muted">limits of each {quota.kind}</span></>}
      {word === "over soft limit" && ends !== null && <> <span class="muted">grace ends <Time at={ends} /></span></>}
    </>
  );
}
