// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { call } from "../../api/call";
import { notify } from "../../notices";
import { Dialog } from "../../parts/dialog";
import { Form } from "../../parts/form";
import { MountedNow, useEffectOf } from "./export_effect";
import { ExportFields } from "./export_fields";
import { bodyOf, fault, NEW_EXPORT, pathAround } from "./export_rules";

// `paths`: of the exports there are. What a new one costs them is said before it is made.
export function NewExport({ paths, onClose }: { paths: string[]; onClose: () => void }) {
  const [rules, setRules] = useState(NEW_EXPORT);
  const around = fault(rules) === undefined ? pathAround(rules.path, paths) : undefined;
  const effect = useEffectOf(around === undefined ? undefined : rules);
  return (
    <Dialog title="New export" onClose={onClose}>
      <Form submit="Export" disabled={fault(rules) !== undefined} onCancel={onClose} onSubmit={async () => {
        const made = await call("POST /exports", { body: bodyOf(rules) });
        notify(`Exported ${made.path}. ${made.warning ?? ""}`);
        onClose();
      }}>
        {(problem) => (
          <>
            <ExportFields rules={rules} onRules={setRules} problem={problem} />
            {around !== undefined && (
              <div class="note" role="status">
                <p><strong>It is inside the export {around}.</strong> Filehandles of {around} may lead into it, so they end: clients
                  that have {around} mounted must reopen their files, and see here only what this export allows them.</p>
                {effect && <MountedNow effect={effect} path={rules.path} />}
              </div>
            )}
          </>
        )}
      </Form>
    </Dialog>
  );
}
