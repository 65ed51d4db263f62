// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Export } from "../../api/generated";
import { everyPage } from "../../api/every_page";
import { usePoll } from "../../api/use_poll";
import { HistorySection } from "../../history/history_section";
import { Empty } from "../../parts/empty";
import { Loaded } from "../../parts/loaded";
import { PageHead } from "../../parts/page_head";
import { Panel } from "../../parts/panel";
import { useMay } from "../../session";
import { EditExport } from "./edit_export";
import { ExportTable } from "./export_table";
import { MountCommands } from "./mount_commands";
import { NewExport } from "./new_export";
import { RemoveExport } from "./remove_export";

const EXPORTS_MS = 3000;

type Open = { what: "new" } | { what: "edit" | "remove"; of: Export } | null;

export function Exports() {
  const exports = usePoll("exports", (signal) => everyPage("GET /exports", { signal }), EXPORTS_MS);
  const [open, setOpen] = useState<Open>(null);
  const may = useMay();
  const close = () => {
    setOpen(null);
    exports.refresh();
  };
  const create = may("POST /exports") && (
    <button type="button" class="button button-main" onClick={() => setOpen({ what: "new" })}>New export</button>
  );
  return (
    <>
      <PageHead title="Exports" lead="Directories that clients may mount, and which clients may.">{create}</PageHead>
      <Panel title="Exported directories">
        <Loaded from={exports}>
          {({ items }) => (
            <ExportTable exports={items}
              empty={<Empty title="Nothing is exported: no client can mount."><p>Export a directory to begin; / exports everything.</p>{create}</Empty>}
              onEdit={(of) => setOpen({ what: "edit", of })} onRemove={(of) => setOpen({ what: "remove", of })} />
          )}
        </Loaded>
      </Panel>
      {exports.value && (
        <HistorySection of="export" what="export" choices={exports.value.items.map(({ id, path }) => ({ id: String(id), label: path }))}
          note={() => (
            <p class="muted">Only traffic through the server. The server does not know which export direct I/O belongs to; the mounts do.</p>
          )} />
      )}
      <Panel title="How a client mounts one">
        <MountCommands />
      </Panel>
      {open?.what === "new" && <NewExport paths={exports.value?.items.map((item) => item.path) ?? []} onClose={close} />}
      {open?.what === "edit" && <EditExport id={open.of.id} path={open.of.path} onClose={close} />}
      {open?.what === "remove" && <RemoveExport of={open.of} onClose={close} />}
    </>
  );
}
