// SPDX-License-Identifier: Apache-2.0
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { BlockMap } from "../../api/generated";
import { bytesText } from "../../format/number";
import { useWidth } from "../../parts/use_width";
import { useColours } from "../../theme";
import { cellsOf, nextExposed, STATE_WORDS, type Cell } from "./block_grid";
import { cellAt, drawBlocks, gridShape } from "./draw_blocks";

const CELLS_MAX = 4096;

interface Props {
  map: BlockMap;
  picked: number | null;
  onPick: (cell: { block: number; count: number } | null) => void;
}

// The blocks as a picture that can be pointed at and walked through. Arrows walk, N and P go to the next and the
// previous cell somebody reaches, Enter picks it, Escape lets it go; what is under the focus is spoken.
export function BlockPicture({ map, picked, onPick }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(frame);
  const colours = useColours();
  const { cells, blocksPerCell } = useMemo(() => cellsOf(map, CELLS_MAX), [map]);
  const shape = useMemo(() => gridShape(width, cells.length), [width, cells.length]);
  const [at, setAt] = useState<number | null>(null);
  const [focused, setFocused] = useState(false);
  const pickedCell = picked === null ? null : Math.floor(picked / blocksPerCell);

  useEffect(() => {
    if (canvas.current && width > 0) drawBlocks(canvas.current, shape, cells, map.block_bytes, { at, picked: pickedCell });
  }, [cells, shape, width, at, pickedCell, colours]);

  const cell = at === null ? undefined : cells[at];
  const pick = (position: number) => {
    const chosen = cells[position];
    if (chosen) onPick({ block: chosen.block, count: chosen.count });
  };
  const key = (event: KeyboardEvent) => {
    const next = step(event.key, at ?? 0, cells, shape.columns);
    if (event.key === "Enter" || event.key === " ") pick(at ?? 0);
    else if (event.key === "Escape") onPick(null);
    else if (next === undefined) return;
    else setAt(next);
    event.preventDefault();
  };
  const pointed = (event: MouseEvent) => cellAt(shape, cells.length, event.offsetX, event.offsetY);

  return (
    <div class="picture" ref={frame}>
      <canvas ref={canvas} tabIndex={0} role="application" aria-label="Block map" aria-describedby="block-help block-at"
        onKeyDown={key} onFocus={() => { setFocused(true); setAt(at ?? nextExposed(cells, -1, 1) ?? 0); }}
        onBlur={() => { setFocused(false); setAt(null); }}
        onPointerMove={(event) => setAt(pointed(event))} onPointerLeave={() => setAt(focused ? at : null)}
        onClick={(event) => { const position = pointed(event); if (position !== null) pick(position); }} />
      <p id="block-at" class="picture-at" aria-live={focused ? "polite" : "off"}>{cell ? describe(cell, map) : "\u00a0"}</p>
      <p id="block-help" class="hint">Point at a block or use the arrow keys; N and P go to the next and the previous block
        that a client can reach, Enter shows which client.{blocksPerCell > 1 && ` One cell is ${blocksPerCell} blocks.`}</p>
    </div>
  );
}

function step(key: string, at: number, cells: Cell[], columns: number): number | undefined {
  const inside = (position: number) => Math.min(Math.max(position, 0), cells.length - 1);
  switch (key) {
    case "ArrowRight": return inside(at + 1);
    case "ArrowLeft": return inside(at - 1);
    case "ArrowDown": return at + columns < cells.length ? at + columns : at;
    case "ArrowUp": return at - columns >= 0 ? at - columns : at;
    case "Home": return 0;
    case "End": return cells.length - 1;
    case "n": return nextExposed(cells, at, 1) ?? at;
    case "p": return nextExposed(cells, at, -1) ?? at;
    default: return undefined;
  }
}

const NAMES_MAX = 2;

export function describe(cell: Cell, map: BlockMap): string {
  const place = cell.count === 1 ? `Block ${cell.block}` : `Blocks ${cell.block} to ${cell.block + cell.count - 1}`;
  const grants = cell.runs.flatMap((index) => map.runs[index]?.grants ?? []);
  const names = [...new Set(grants.map((grant) =>
    `${grant.client_name || grant.client} ${grant.writable ? "writes" : "reads"} ${grant.path ?? `inode ${grant.inode}`}`))];
  const who = names.slice(0, NAMES_MAX).join("; ") + (names.length > NAMES_MAX ? `; and ${names.length - NAMES_MAX} more` : "");
  const reach = cell.reachable > 0 ? `, ${bytesText(cell.reachable)} of ${bytesText(cell.count * map.block_bytes)}` : "";
  return `${place}: ${STATE_WORDS[cell.state]}${reach}${who ? `. ${who}` : ""}`;
}
