// SPDX-License-Identifier: Apache-2.0
import { bytesText } from "../../format/number";
import { DataList } from "../../list/data_list";
import { rowsOf } from "../../list/source";
import { Badge } from "../../parts/badge";
import { Empty } from "../../parts/empty";
import { Link } from "../../parts/link";
import { useMay } from "../../session";
import type { Exposed } from "./block_grid";
import type { Revocable } from "./revoke_layout";

interface Props {
  exposed: Exposed[];
  // Of which blocks: "" of all.
  of: string;
  onRevoke: (layout: Revocable) => void;
}

// The picture in words, with the button that ends it.
export function ExposedTable({ exposed, of, onRevoke }: Props) {
  const may = useMay();
  const nobody = of === ""
    ? (
      <Empty title="No client can reach this device's memory now.">
        <p>When a client reads or writes a file by RDMA, its blocks light up here within a second.</p>
      </Empty>
    )
    : <Empty title="No client can reach this block now." />;
  return (
    <DataList caption="Who can reach memory of this device" from={rowsOf(`exposed ${of}`, exposed)} rowKey={(row) => row.layout}
      sort="file" empty={nobody} columns={[
        { title: "File", value: fileOf, cell: (row) => <code class="wrap strong">{fileOf(row)}</code> },
        { title: "Client", value: clientOf, cell: (row) => <Link href={`/clients?client=${row.client}`}>{clientOf(row)}</Link> },
        { title: "Rights", value: rightsOf, cell: (row) => <Badge tone={row.writable ? "write" : "read"}>{rightsOf(row)}</Badge> },
        { title: "Reaches", numeric: true, unit: "bytes", value: (row) => row.bytes, cell: (row) => bytesText(row.bytes) },
        { title: "Actions", quiet: true, cell: (row) => may("DELETE /layouts/{id}") &&
          <button type="button" class="button button-danger" aria-label={`Revoke ${row.path ?? row.layout} from ${clientOf(row)}`}
            onClick={() => onRevoke({ ...row, id: row.layout })}>Revoke…</button> },
      ]} />
  );
}

function fileOf(row: Exposed): string {
  return row.path ?? `inode ${row.inode}`;
}

function clientOf(row: Exposed): string {
  return row.client_name || row.client;
}

function rightsOf(row: Exposed): string {
  return row.writable ? "read and write" : "read";
}
