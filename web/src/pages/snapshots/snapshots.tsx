// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { call } from "../../api/call";
import { everyPage } from "../../api/every_page";
import { asProblem } from "../../api/problem";
import type { Snapshot } from "../../api/generated";
import { usePoll } from "../../api/use_poll";
import { bytesText } from "../../format/number";
import { notify } from "../../notices";
import { Empty } from "../../parts/empty";
import { Loaded } from "../../parts/loaded";
import { PageHead } from "../../parts/page_head";
import { Panel } from "../../parts/panel";
import { useMay } from "../../session";
import { NewSnapshot } from "./new_snapshot";
import { RemoveSnapshot } from "./remove_snapshot";
import { SchedulePanel } from "./schedule_panel";
import { SnapshotTable } from "./snapshot_table";

const SNAPSHOTS_MS = 3000;

type Open = { what: "new" } | { what: "remove"; of: Snapshot } | null;

async function readAll(signal: AbortSignal) {
  const [{ items }, { held_bytes }] = await Promise.all([
    everyPage("GET /snapshots", { signal }), call("GET /snapshots", { query: { limit: 1 }, signal })]);
  return { items, held_bytes };
}

export function Snapshots() {
  const snapshots = usePoll("snapshots", readAll, SNAPSHOTS_MS);
  const [open, setOpen] = useState<Open>(null);
  const may = useMay();
  const close = () => {
    setOpen(null);
    snapshots.refresh();
  };
  const pin = async ({ id, name, pinned }: Snapshot) => {
    try {
      await call("PATCH /snapshots/{id}", { path: { id }, body: { pinned: !pinned } });
      notify(pinned ? `${name} can be removed again.` : `${name} is pinned: it cannot be removed.`);
    } catch (error) {
      notify(asProblem(error).message, "bad");
    }
    snapshots.refresh();
  };
  const create = may("POST /snapshots") && (
    <button type="button" class="button button-main" onClick={() => setOpen({ what: "new" })}>New snapshot</button>
  );
  return (
    <>
      <PageHead title="Snapshots" lead="All files as they were. Clients read them in .snapshots of each export.">{create}</PageHead>
      <Panel title="Snapshots of this server">
        <Loaded from={snapshots}>
          {({ items, held_bytes }) => (
            <>
              <SnapshotTable snapshots={items} onPin={(of) => void pin(of)} onRemove={(of) => setOpen({ what: "remove", of })}
                empty={<Empty title="There is no snapshot."><p>A snapshot costs only what changes after it. It is no backup: it is in the same memory.</p>{create}</Empty>} />
              {items.length > 0 && <p class="muted">{bytesText(held_bytes)} of memory are only in snapshots.</p>}
            </>
          )}
        </Loaded>
      </Panel>
      <SchedulePanel />
      {open?.what === "new" && <NewSnapshot onClose={close} />}
      {open?.what === "remove" && <RemoveSnapshot of={open.of} onClose={close} />}
    </>
  );
}
