// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import type { Brick } from "../../api/generated";
import { bytesText, countText } from "../../format/number";
import { DataList } from "../../list/data_list";
import { rowsOf } from "../../list/source";
import { Badge } from "../../parts/badge";
import { brickName, controlText, controlTone, freeBytes, stateTone } from "./brick_words";

interface Props {
  bricks: Brick[];
  // All about one of them.
  below: (brick: Brick) => ComponentChildren;
}

// Many bricks in a table, and below it all about those it shows; of a single one there is nothing to compare.
export function BrickList({ bricks, below }: Props) {
  const only = bricks.length === 1 ? bricks[0] : undefined;
  if (only) return <>{below(only)}</>;
  return (
    <DataList caption="Devices" from={rowsOf("bricks", bricks)} rowKey={(brick) => brick.id} sort="name" empty={null}
      below={(shown) => <div class="list-below">{shown.map(below)}</div>} columns={[
        { title: "Name", value: brickName, cell: (brick) => <strong class="wrap">{brickName(brick)}</strong> },
        { title: "State", value: (brick) => brick.state, cell: (brick) => <Badge tone={stateTone(brick.state)}>{brick.state}</Badge> },
        { title: "Durability", value: (brick) => brick.durability, cell: (brick) => brick.durability },
        { title: "Used", numeric: true, unit: "bytes", value: (brick) => brick.used_bytes, cell: (brick) => bytesText(brick.used_bytes) },
        { title: "Free", numeric: true, unit: "bytes", value: freeBytes, cell: (brick) => bytesText(freeBytes(brick)) },
        { title: "Size", numeric: true, unit: "bytes", value: (brick) => brick.capacity_bytes, cell: (brick) => bytesText(brick.capacity_bytes) },
        { title: "Live handles", numeric: true, value: (brick) => brick.grants, cell: (brick) => countText(brick.grants) },
        { title: "Control", value: controlText, cell: (brick) => <Badge tone={controlTone(brick)}>{controlText(brick)}</Badge> },
        { title: "Address", value: (brick) => brick.address, cell: (brick) => <code class="wrap">{brick.address}</code> },
      ]} />
  );
}
