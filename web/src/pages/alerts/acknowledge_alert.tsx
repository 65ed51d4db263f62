// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Alert } from "../../api/generated";
import { call } from "../../api/call";
import { Dialog } from "../../parts/dialog";
import { Form } from "../../parts/form";
import { SelectField } from "../../parts/select_field";
import { TextField } from "../../parts/text_field";

const HOUR = 3600;
const PERIODS = [
  { value: "0", label: "until it is resolved" },
  { value: String(HOUR), label: "for an hour" },
  { value: String(8 * HOUR), label: "for eight hours" },
  { value: String(24 * HOUR), label: "for a day" },
  { value: String(7 * 24 * HOUR), label: "for a week" },
];

export function AcknowledgeAlert({ alert, onClose }: { alert: Alert; onClose: () => void }) {
  const [comment, setComment] = useState("");
  const [period, setPeriod] = useState("0");
  return (
    <Dialog title="Acknowledge the alert" onClose={onClose}>
      <p><strong>{alert.summary}</strong></p>
      <Form submit="Acknowledge" onCancel={onClose} onSubmit={async () => {
        const seconds = Number(period);
        await call("POST /alerts/{id}/acknowledgement", {
          path: { id: alert.id }, body: { comment, ...(seconds > 0 ? { for_seconds: seconds } : {}) },
        });
        onClose();
      }}>
        {(problem) => (
          <>
            <TextField label="Comment" value={comment} onValue={setComment} error={problem?.errorOf("comment")}
              hint="For others: what is being done about it." input={{ autocomplete: "off", autoFocus: true, maxLength: 1000 }} />
            <SelectField label="For" value={period} onValue={setPeriod} options={PERIODS}
              hint="It stays in the list but no longer needs attention. If it fires again after it was resolved, it is a new alert." />
          </>
        )}
      </Form>
    </Dialog>
  );
}
