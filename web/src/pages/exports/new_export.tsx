// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { call } from "../../api/call";
import { notify } from "../../notices";
import { Dialog } from "../../parts/dialog";
import { Form } from "../../parts/form";
import { ExportFields } from "./export_fields";
import { bodyOf, fault, NEW_EXPORT } from "./export_rules";

export function NewExport({ onClose }: { onClose: () => void }) {
  const [rules, setRules] = useState(NEW_EXPORT);
  return (
    <Dialog title="New export" onClose={onClose}>
      <Form submit="Export" disabled={fault(rules) !== undefined} onCancel={onClose} onSubmit={async () => {
        const made = await call("POST /exports", { body: bodyOf(rules) });
        notify(`Exported ${made.path}.`);
        onClose();
      }}>
        {(problem) => <ExportFields rules={rules} onRules={setRules} problem={problem} />}
      </Form>
    </Dialog>
  );
}
