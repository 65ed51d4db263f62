// SPDX-License-Identifier: Apache-2.0
import { DataTable } from "../../parts/data_table";
import { differences, type ExportRules } from "./export_rules";

interface Props {
  theirs: ExportRules;
  mine: ExportRules;
  onChoice: (whose: "theirs" | "mine") => void;
}

// Somebody changed it between opening and saving: what differs, and whose is to stay.
export function Conflict({ theirs, mine, onChoice }: Props) {
  const rows = differences(theirs, mine);
  return (
    <div class="note note-bad" role="alert">
      <p><strong>Somebody else changed it meanwhile.</strong> Nothing was saved.</p>
      {rows.length === 0
        ? <p>Their change is the same as yours.</p>
        : <DataTable caption="Differences" rows={rows} rowKey={(row) => row.name} columns={[
          { title: "Rule", cell: (row) => row.name },
          { title: "On the server now", cell: (row) => row.theirs },
          { title: "In this form", cell: (row) => row.mine },
        ]} />}
      <div class="actions">
        <button type="button" class="button" onClick={() => onChoice("theirs")}>Discard my changes</button>
        <button type="button" class="button" onClick={() => onChoice("mine")}>Keep my changes and save again</button>
      </div>
    </div>
  );
}
