// SPDX-License-Identifier: Apache-2.0
import { bytesText } from "../../format/number";
import { Badge } from "../../parts/badge";
import { DataTable } from "../../parts/data_table";
import { Empty } from "../../parts/empty";
import { Link } from "../../parts/link";
import { useMay } from "../../session";
import type { Exposed } from "./block_grid";
import type { Revocable } from "./revoke_layout";

interface Props {
  exposed: Exposed[];
  all: boolean;
  onRevoke: (layout: Revocable) => void;
}

// The picture in words, with the button that ends it.
export function ExposedTable({ exposed, all, onRevoke }: Props) {
  const may = useMay();
  if (exposed.length === 0) {
    return (
      <Empty title={all ? "Nobody reaches this device's memory now." : "Nobody reaches this block now."}>
        {all && <p>When a client reads or writes a file by RDMA, its blocks light up here within a second.</p>}
      </Empty>
    );
  }
  return (
    <DataTable caption="Who can reach memory of this device" rows={exposed} rowKey={(row) => row.layout} columns={[
      { title: "File", cell: (row) => <code class="wrap strong">{row.path ?? `inode ${row.inode}`}</code> },
      { title: "Client", cell: (row) => <Link href={`/clients?client=${row.client}`}>{row.client_name || row.client}</Link> },
      { title: "Rights", cell: (row) => row.writable ? <Badge tone="write">read and write</Badge> : <Badge tone="read">read</Badge> },
      { title: "Reaches", numeric: true, cell: (row) => bytesText(row.bytes) },
      { title: "Actions", quiet: true, cell: (row) => may("DELETE /layouts/{id}") &&
        <button type="button" class="button button-danger" aria-label={`Revoke ${row.path ?? row.layout} from ${row.client_name || row.client}`}
          onClick={() => onRevoke({ ...row, id: row.layout })}>Revoke…</button> },
    ]} />
  );
}
