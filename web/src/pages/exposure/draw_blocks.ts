// SPDX-License-Identifier: Apache-2.0
import { colour } from "../../theme";
import type { BlockState, Cell } from "./block_grid";

export interface GridShape {
  columns: number;
  rows: number;
  // Side of a cell with its gap, CSS pixels.
  pitch: number;
}

const PITCH_MAX = 22;
const PITCH_MIN = 6;
const HEIGHT_WANTED = 420;

// The largest cells with which everything fits into about HEIGHT_WANTED pixels of height.
export function gridShape(width: number, cells: number): GridShape {
  for (let pitch = PITCH_MAX; ; pitch--) {
    const columns = Math.max(1, Math.floor(width / pitch));
    const rows = Math.max(1, Math.ceil(cells / columns));
    if (rows * pitch <= HEIGHT_WANTED || pitch <= PITCH_MIN) return { columns, rows, pitch };
  }
}

// Which cell lies there; null: none.
export function cellAt(shape: GridShape, cells: number, x: number, y: number): number | null {
  const column = Math.floor(x / shape.pitch);
  const row = Math.floor(y / shape.pitch);
  const position = row * shape.columns + column;
  return column >= 0 && column < shape.columns && row >= 0 && position < cells ? position : null;
}

const COLOURS: Record<BlockState, string> = {
  "free": "--block-free", "data": "--block-data", "granted-read": "--read", "granted-write": "--write",
};

const REACHED_HEIGHT_MIN = 3;

// How high a part of a cell is filled, in pixels of its side: what is reached at all is to be seen.
export function filledHeight(part: number, whole: number, side: number): number {
  if (part <= 0 || whole <= 0) return 0;
  return Math.min(side, Math.max(REACHED_HEIGHT_MIN, Math.round((part / whole) * side)));
}

// Colours say what a cell is, and marks say it again for who does not see colours: free is hollow, what can be read
// has a hole, what can be written is full. A cell is filled from below as far as clients reach its bytes.
export function drawBlocks(canvas: HTMLCanvasElement, shape: GridShape, cells: Cell[], blockBytes: number,
  marks: { at: number | null; picked: number | null }): void {
  const ratio = window.devicePixelRatio || 1;
  const width = shape.columns * shape.pitch;
  const height = shape.rows * shape.pitch;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const paint = canvas.getContext("2d");
  if (!paint) return;
  paint.scale(ratio, ratio);
  const gap = shape.pitch > 9 ? 2 : 1;
  const side = shape.pitch - gap;
  const fills = Object.fromEntries(Object.entries(COLOURS).map(([state, name]) => [state, colour(name)]));
  const ground = colour("--panel");
  cells.forEach((cell, position) => {
    const x = (position % shape.columns) * shape.pitch;
    const y = Math.floor(position / shape.columns) * shape.pitch;
    paint.fillStyle = fills[cell.used > 0 ? "data" : "free"] ?? "";
    paint.fillRect(x, y, side, side);
    if (cell.used === 0 && side > 3) hollow(paint, x, y, side, side, 1, ground);
    const whole = cell.count * blockBytes;
    const reachable = filledHeight(cell.reachable, whole, side);
    const writable = filledHeight(cell.writable, whole, side);
    paint.fillStyle = fills["granted-read"] ?? "";
    paint.fillRect(x, y + side - reachable, side, reachable);
    if (reachable > writable) hollow(paint, x, y + side - reachable, side, reachable - writable, Math.ceil(side / 3), ground);
    paint.fillStyle = fills["granted-write"] ?? "";
    paint.fillRect(x, y + side - writable, side, writable);
  });
  outline(paint, shape, side, marks.picked, colour("--text"), 2);
  outline(paint, shape, side, marks.at, colour("--focus"), 2);
}

function hollow(paint: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, rim: number, ground: string): void {
  if (height <= 2 * rim) return;
  paint.fillStyle = ground;
  paint.fillRect(x + rim, y + rim, width - 2 * rim, height - 2 * rim);
}

function outline(paint: CanvasRenderingContext2D, shape: GridShape, side: number, position: number | null,
  stroke: string, width: number): void {
  if (position === null) return;
  paint.strokeStyle = stroke;
  paint.lineWidth = width;
  const x = (position % shape.columns) * shape.pitch;
  const y = Math.floor(position / shape.columns) * shape.pitch;
  paint.strokeRect(x + width / 2, y + width / 2, side - width, side - width);
}
