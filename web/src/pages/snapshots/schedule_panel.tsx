// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { callFor } from "../../api/call";
import { usePoll } from "../../api/use_poll";
import { Facts } from "../../parts/facts";
import { Loaded } from "../../parts/loaded";
import { Panel } from "../../parts/panel";
import { Time } from "../../parts/time";
import { useMay } from "../../session";
import { EditSchedule } from "./edit_schedule";
import { keptText } from "./schedule_words";

const SCHEDULE_MS = 5000;

// Snapshots that the server takes and removes by itself.
export function SchedulePanel() {
  const schedule = usePoll("snapshot schedule", (signal) => callFor("GET /snapshots/schedule", { signal }), SCHEDULE_MS);
  const [editing, setEditing] = useState(false);
  const may = useMay();
  const close = () => {
    setEditing(false);
    schedule.refresh();
  };
  const change = may("PUT /snapshots/schedule") && schedule.value && (
    <button type="button" class="button" onClick={() => setEditing(true)}>Change schedule</button>
  );
  return (
    <Panel title="Schedule" aside={change}>
      <Loaded from={schedule}>
        {({ value }) => (
          <>
            {value.next.length === 0 ? <p class="muted">No snapshots are scheduled.</p> : (
              <Facts of={[
                ["Kept", keptText(value)],
                ...value.next.map((next): [string, ComponentChildren] => [`Next ${next.schedule}`, <Time at={next.due} absolute />]),
              ]} />
            )}
            {value.failure && (
              <p class={value.tries_in_vain > 0 ? "wrap" : "muted wrap"}>
                The last {value.failure.schedule} one that failed, at <Time at={value.failure.time} absolute />: {value.failure.detail}.
                {value.tries_in_vain > 0 && ` ${value.tries_in_vain} tries have failed; it is tried again.`}
              </p>
            )}
          </>
        )}
      </Loaded>
      {editing && schedule.value && <EditSchedule schedule={schedule.value.value} etag={schedule.value.etag ?? "*"} onClose={close} />}
    </Panel>
  );
}
