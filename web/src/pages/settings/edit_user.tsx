// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Role, User } from "../../api/generated";
import { call, callFor } from "../../api/call";
import { notify } from "../../notices";
import { Dialog } from "../../parts/dialog";
import { Form } from "../../parts/form";
import { SelectField } from "../../parts/select_field";
import { TextField } from "../../parts/text_field";
import { ROLES } from "./new_token";
import { PASSWORD_LENGTH_MIN } from "./password";

// Makes a user, or changes the role or the password of one. Without If-Match the server refuses to change one that is
// there, so a new user never takes the place of an old one.
export function EditUser({ user, onClose }: { user: User | null; onClose: () => void }) {
  const [name, setName] = useState(user?.name ?? "");
  const [role, setRole] = useState<Role>(user?.role ?? "viewer");
  const [password, setPassword] = useState("");
  const short = password !== "" && password.length < PASSWORD_LENGTH_MIN;
  const save = async () => {
    const etag = user ? (await callFor("GET /users/{name}", { path: { name } })).etag ?? undefined : undefined;
    await call("PUT /users/{name}", { path: { name }, body: { role, ...(password ? { password } : {}) }, ifMatch: etag });
    notify(user ? `Changed ${name}.` : `Created the user ${name}.`);
    onClose();
  };
  return (
    <Dialog title={user ? `Edit ${user.name}` : "New user"} onClose={onClose}>
      <Form submit="Save" disabled={name === "" || short || (!user && password === "")} onCancel={onClose} onSubmit={save}>
        {(problem) => (
          <>
            <TextField label="Name" value={name} onValue={setName} error={problem?.errorOf("name")}
              hint="Lower-case letters, digits, _ . and -; starts with a letter." input={{ readOnly: user !== null, autocomplete: "off", autoFocus: !user }} />
            <SelectField label="Role" value={role} onValue={setRole} options={ROLES.map((each) => ({ value: each, label: each }))}
              hint="A viewer can see everything, an operator can also revoke and expel, an admin can do everything." />
            <TextField label={user ? "New password" : "Password"} value={password} onValue={setPassword}
              error={problem?.errorOf("password") ?? (short ? `Use at least ${PASSWORD_LENGTH_MIN} characters.` : undefined)}
              hint={`At least ${PASSWORD_LENGTH_MIN} characters.${user ? " Leave empty to keep the password. A new one ends the user's sessions." : ""}`}
              input={{ type: "password", autocomplete: "new-password" }} />
          </>
        )}
      </Form>
    </Dialog>
  );
}
