// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { call, callFor } from "../../api/call";
import { notify } from "../../notices";
import { Dialog } from "../../parts/dialog";
import { Form } from "../../parts/form";
import { SelectField } from "../../parts/select_field";
import { TextField } from "../../parts/text_field";
import { LimitFields } from "./limit_fields";
import { anyFault, changesOf, NO_LIMITS } from "./quota_words";

const KINDS = [{ value: "user", label: "User" }, { value: "group", label: "Group" }] as const;

// For those that have no files yet, too. Limits that are left empty stay what they are.
export function NewLimits({ onClose }: { onClose: () => void }) {
  const [kind, setKind] = useState<"user" | "group">("user");
  const [who, setWho] = useState("");
  const [texts, setTexts] = useState(NO_LIMITS);
  const changes = changesOf(NO_LIMITS, texts);
  return (
    <Dialog title="New limits" onClose={onClose}>
      <Form submit="Set limits" disabled={who === "" || anyFault(texts) || Object.keys(changes).length === 0} onCancel={onClose}
        onSubmit={async () => {
          const path = { kind, who };
          const { etag } = await callFor("GET /quotas/{kind}/{who}", { path });
          await call("PATCH /quotas/{kind}/{who}", { path, body: changes, ifMatch: etag ?? "" });
          notify(`Set limits of the ${kind} ${who}.`);
          onClose();
        }}>
        {(problem) => (
          <>
            <SelectField label="Of" value={kind} onValue={setKind} options={KINDS} />
            <TextField label="Name or number" value={who} onValue={setWho} error={problem?.errorOf("who")}
              hint="As the server's host knows it." input={{ autocomplete: "off", autoFocus: true }} />
            <LimitFields texts={texts} onTexts={setTexts} problem={problem} />
          </>
        )}
      </Form>
    </Dialog>
  );
}
