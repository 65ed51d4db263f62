// SPDX-License-Identifier: Apache-2.0
// Makes what events mean, for the page that shows them, from the catalogue that administrators read.
// usage: node event_meanings.mjs EVENTS_MD OUTPUT_TS
import { readFileSync, writeFileSync } from "node:fs";

// The console shows the events of the metadata server's process.
const SECTIONS = ["MDS", "Every program"];

const plain = (cell) => cell.replace(/\[([^\]]+)\]\([^)]*\)/g, "$1").replaceAll("`", "").trim();

function meanings(text) {
  const found = {};
  let section = "";
  let columns = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("## ")) section = line.slice(3).trim();
    if (!line.startsWith("|")) columns = [];
    if (!line.startsWith("|") || !SECTIONS.includes(section)) continue;
    const cells = line.split("|").slice(1, -1).map(plain);
    if (cells.includes("event")) {
      columns = cells;
    } else if (columns.length > 0 && !cells[0].startsWith("---")) {
      const row = Object.fromEntries(columns.map((column, at) => [column, cells[at]]));
      found[row.event] ??= { meaning: row.meaning, remedy: row["what to do"] };
    }
  }
  return found;
}

const [source, target] = process.argv.slice(2);
const found = meanings(readFileSync(source, "utf8"));
if (Object.keys(found).length < 50) throw new Error(`${source} has other tables than before`);
writeFileSync(target, `// Made from docs/events.md by generate/event_meanings.mjs: not edited, not committed.
export const EVENT_MEANINGS: Record<string, { meaning: string; remedy: string }> = ${JSON.stringify(found, null, 1)};
`);
