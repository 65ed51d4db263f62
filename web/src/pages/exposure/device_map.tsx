// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { BlockMap, Brick } from "../../api/generated";
import { usePoll } from "../../api/use_poll";
import { bytesText, plural } from "../../format/number";
import { Loaded } from "../../parts/loaded";
import { Panel } from "../../parts/panel";
import { brickName } from "../devices/brick_words";
import { BlockPicture } from "./block_picture";
import { bytesOf, exposedOf, runsWithin, STATES, STATE_WORDS } from "./block_grid";
import { blockMap } from "./block_pages";
import { ExposedTable } from "./exposed_table";
import { RevokeLayout, type Revocable } from "./revoke_layout";

// A layout that is granted is to be seen within a second, and gone as soon when it is revoked.
const MAP_MS = 400;

// One device: the picture, the same in words beside it, and the way to take memory back.
export function DeviceMap({ brick }: { brick: Brick }) {
  const map = usePoll(`blocks ${brick.id}`, (signal) => blockMap(brick.id, signal), MAP_MS);
  const [picked, setPicked] = useState<{ block: number; count: number } | null>(null);
  const [revoked, setRevoked] = useState<Revocable | null>(null);
  return (
    <>
      <Loaded from={map}>
        {(value) => {
          const shown = picked === null ? value.runs : runsWithin(value.runs, picked);
          return (
            <div class="exposure">
              <Panel title={brickName(brick)} aside={<span class="muted">{plural(value.blocks, "block")} of {bytesText(value.block_bytes)}</span>}>
                <Key map={value} />
                <BlockPicture map={value} picked={picked?.block ?? null} onPick={setPicked} />
                {value.next_cursor !== null && <p class="note">The device is too fragmented to be shown completely.</p>}
              </Panel>
              <Panel title={picked === null ? "Who reaches it" : `Who reaches ${blocksText(picked)}`} aside={picked !== null &&
                <button type="button" class="button" onClick={() => setPicked(null)}>Show all</button>}>
                <ExposedTable exposed={exposedOf(shown)} of={picked === null ? "" : blocksText(picked)} onRevoke={setRevoked} />
              </Panel>
            </div>
          );
        }}
      </Loaded>
      {revoked && <RevokeLayout layout={revoked} onChanged={map.refresh} onClose={() => setRevoked(null)} />}
    </>
  );
}

function blocksText({ block, count }: { block: number; count: number }): string {
  return count === 1 ? `block ${block}` : `blocks ${block} to ${block + count - 1}`;
}

function Key({ map }: { map: BlockMap }) {
  const bytes = bytesOf(map);
  return (
    <ul class="key">
      {STATES.map((state) => (
        <li key={state}>
          <span class={`key-cell key-${state}`} aria-hidden="true" />
          {STATE_WORDS[state]} <span class="legend-value">{bytesText(bytes[state])}</span>
        </li>
      ))}
    </ul>
  );
}
