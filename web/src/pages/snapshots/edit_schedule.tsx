// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { SnapshotSchedule } from "../../api/generated";
import { call } from "../../api/call";
import { notify } from "../../notices";
import { Dialog } from "../../parts/dialog";
import { Form } from "../../parts/form";
import { TextField } from "../../parts/text_field";
import { CLASSES, formOf, isGood, numberFault, scheduleOf, sumFault, timeFault } from "./schedule_words";

const LABELS = { hourly: "Hourly", daily: "Daily", weekly: "Weekly, on Mondays", monthly: "Monthly, on the first" } as const;

interface Props {
  schedule: SnapshotSchedule;
  etag: string;
  onClose: () => void;
}

export function EditSchedule({ schedule, etag, onClose }: Props) {
  const [form, setForm] = useState(formOf(schedule));
  return (
    <Dialog title="Schedule of snapshots" onClose={onClose}>
      <Form submit="Change" disabled={!isGood(form)} onCancel={onClose} onSubmit={async () => {
        await call("PUT /snapshots/schedule", { body: scheduleOf(form), ifMatch: etag });
        notify("Changed. The change survives a restart.");
        onClose();
      }}>
        {(problem) => (
          <>
            <p>How many of each are kept. When a new one has been taken, the oldest above that number are removed; pinned ones do not count. 0: none are taken, and those that there are stay.</p>
            {CLASSES.map((each) => (
              <TextField key={each} label={LABELS[each]} value={form[each]} onValue={(value) => setForm({ ...form, [each]: value })}
                error={problem?.errorOf(each) ?? numberFault(form[each])} input={{ autocomplete: "off", inputMode: "numeric" }} />
            ))}
            <TextField label="Time (UTC)" value={form.time} onValue={(time) => setForm({ ...form, time })} error={timeFault(form.time) ?? sumFault(form)}
              hint="Hourly ones are taken at this minute of each hour." input={{ autocomplete: "off" }} />
          </>
        )}
      </Form>
    </Dialog>
  );
}
