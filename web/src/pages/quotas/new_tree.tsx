// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { call, callFor } from "../../api/call";
import type { Quota } from "../../api/generated";
import { notify } from "../../notices";
import { Dialog } from "../../parts/dialog";
import { Form } from "../../parts/form";
import { TextField } from "../../parts/text_field";
import { pathFault } from "../exports/export_rules";
import { LimitFields } from "./limit_fields";
import { anyFault, changesOf, NO_LIMITS } from "./quota_words";

export function NewTree({ onClose }: { onClose: () => void }) {
  const [path, setPath] = useState("");
  const [texts, setTexts] = useState(NO_LIMITS);
  // It is made once, also when its limits were refused at first.
  const [made, setMade] = useState<Quota>();
  return (
    <Dialog title="New quota tree" onClose={onClose}>
      <Form submit="Make it a tree" disabled={path === "" || pathFault(path) !== undefined || anyFault(texts)} onCancel={onClose}
        onSubmit={async () => {
          const tree = made ?? await call("POST /quota-trees", { body: { path } });
          setMade(tree);
          const changes = changesOf(NO_LIMITS, texts);
          if (Object.keys(changes).length > 0) {
            const where = { kind: tree.kind, who: String(tree.id) };
            const { etag } = await callFor("GET /quotas/{kind}/{who}", { path: where });
            await call("PATCH /quotas/{kind}/{who}", { path: where, body: changes, ifMatch: etag ?? "" });
          }
          notify(`${path} is a quota tree. What is in it is being counted.`);
          onClose();
        }}>
        {(problem) => (
          <>
            <p>A directory and all that is in it count together, whoever owns it. Files are not moved or linked across its edge:
              programs get EXDEV, and <code>mv</code> copies.</p>
            <TextField label="Directory" value={path} onValue={setPath}
              error={problem?.errorOf("path") ?? (path ? pathFault(path) : undefined)} hint="From the root of the server, whatever is exported."
              input={{ autocomplete: "off", autoFocus: true, readOnly: made !== undefined }} />
            <LimitFields texts={texts} onTexts={setTexts} problem={problem} />
          </>
        )}
      </Form>
    </Dialog>
  );
}
