// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Role, TokenCreated } from "../../api/generated";
import { call } from "../../api/call";
import { Dialog } from "../../parts/dialog";
import { Form } from "../../parts/form";
import { SelectField } from "../../parts/select_field";
import { TextField } from "../../parts/text_field";
import { RANK, useSession } from "../../session";

const DAYS = [
  { value: "30", label: "30 days" },
  { value: "365", label: "1 year" },
  { value: "", label: "no expiry" },
] as const;

export const ROLES: Role[] = ["viewer", "operator", "admin"];

export function NewToken({ onClose }: { onClose: () => void }) {
  const { session } = useSession();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [days, setDays] = useState<"30" | "365" | "">("30");
  const [made, setMade] = useState<TokenCreated>();
  if (made) return <Secret made={made} onClose={onClose} />;
  return (
    <Dialog title="New token" onClose={onClose}>
      <Form submit="Create" disabled={name.trim() === ""} onCancel={onClose} onSubmit={async () => {
        const body = { name: name.trim(), role, ...(days ? { expires_days: Number(days) } : {}) };
        setMade(await call("POST /tokens", { body }));
      }}>
        {(problem) => (
          <>
            <TextField label="Name" value={name} onValue={setName} error={problem?.errorOf("name")} hint="The program that uses it."
              input={{ autocomplete: "off", autoFocus: true }} />
            <SelectField label="Role" value={role} onValue={setRole}
              options={ROLES.filter((each) => RANK[each] <= RANK[session.role]).map((each) => ({ value: each, label: each }))} />
            <SelectField label="Valid for" value={days} options={DAYS} onValue={setDays} />
          </>
        )}
      </Form>
    </Dialog>
  );
}

function Secret({ made, onClose }: { made: TokenCreated; onClose: () => void }) {
  return (
    <Dialog title={`The token ${made.token.name}`} onClose={onClose}>
      <p>The token is shown only once. Store it where only the program can read it.</p>
      <pre class="shell-line" tabIndex={0} aria-label="Token">{made.secret}</pre>
      <div class="actions actions-end">
        <button type="button" class="button" onClick={() => void navigator.clipboard?.writeText(made.secret)}>Copy</button>
        <button type="button" class="button button-main" onClick={onClose}>Done</button>
      </div>
    </Dialog>
  );
}
