// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Brick } from "../../api/generated";
import { everyPage } from "../../api/every_page";
import { usePoll } from "../../api/use_poll";
import { HistorySection } from "../../history/history_section";
import { useMay } from "../../session";
import { Empty } from "../../parts/empty";
import { Loaded } from "../../parts/loaded";
import { PageHead } from "../../parts/page_head";
import { Uncounted } from "../overview/uncounted";
import { AddBrick } from "./add_brick";
import { BrickList } from "./brick_list";
import { BrickPanel } from "./brick_panel";
import { brickName } from "./brick_words";
import { FormatBrick } from "./format_brick";
import { Jobs } from "./jobs";
import { NameBrick } from "./name_brick";
import { RemoveBrick } from "./remove_brick";

const BRICKS_MS = 1000;

type Open = { what: "add" } | { what: "format" | "name" | "remove"; brick: Brick } | null;

export function Devices() {
  const bricks = usePoll("bricks", (signal) => everyPage("GET /bricks", { signal }), BRICKS_MS);
  const [open, setOpen] = useState<Open>(null);
  const may = useMay();
  const close = () => {
    setOpen(null);
    bricks.refresh();
  };
  const add = may("POST /bricks") && (
    <button type="button" class="button button-main" onClick={() => setOpen({ what: "add" })}>Add a device</button>
  );
  return (
    <>
      <PageHead title="Devices" lead="Bricks: programs that own persistent memory and its RDMA device.">{add}</PageHead>
      <Loaded from={bricks}>
        {({ items }) => items.length === 0
          ? (
            <Empty title="No device yet: there is no space for files.">
              <p>Start <code>pnfsrdma-brickd</code> on a host with persistent memory, then add it here by its control address.</p>
              {add}
            </Empty>
          )
          : (
            <>
              <BrickList bricks={items} below={(brick) => (
                <BrickPanel key={brick.id} brick={brick} onFormat={() => setOpen({ what: "format", brick })}
                  onName={() => setOpen({ what: "name", brick })}
                  onRemove={() => setOpen({ what: "remove", brick })} />
              )} />
              <HistorySection of="brick" what="device" choices={items.map((brick) => ({ id: brick.id, label: brickName(brick) }))}
                note={(id) => <Uncounted bricks={items.filter((brick) => brick.id === id)} />} />
            </>
          )}
      </Loaded>
      <Jobs />
      {open?.what === "add" && <AddBrick onClose={close} />}
      {open?.what === "name" && <NameBrick brick={open.brick} onClose={close} />}
      {open?.what === "format" && <FormatBrick brick={open.brick} onClose={close} />}
      {open?.what === "remove" && <RemoveBrick brick={open.brick} onClose={close} />}
    </>
  );
}
