// SPDX-License-Identifier: Apache-2.0
// The product's mark: blocks of memory, two of them reachable.
export function Mark() {
  const cells = [0, 1, 2].flatMap((row) => [0, 1, 2].map((column) => ({ row, column })));
  const tone = (row: number, column: number) =>
    row === 0 && column === 2 ? "mark-read" : row === 1 && column === 1 ? "mark-write" : "mark-data";
  return (
    <svg class="mark" viewBox="0 0 22 22" width="22" height="22" aria-hidden="true">
      {cells.map(({ row, column }) => (
        <rect key={`${row}${column}`} x={column * 8} y={row * 8} width="6" height="6" rx="1" class={tone(row, column)} />
      ))}
    </svg>
  );
}
