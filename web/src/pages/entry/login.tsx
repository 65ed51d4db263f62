// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Session } from "../../api/generated";
import { call } from "../../api/call";
import { Form } from "../../parts/form";
import { TextField } from "../../parts/text_field";
import { Entry } from "./entry";

export function Login({ ended, onDone }: { ended: boolean; onDone: (session: Session) => void }) {
  const [user, setUser] = useState("");
  const [password, setPassword] = useState("");
  return (
    <Entry title="Log in">
      {ended && <p class="note" role="status">Your session has ended. Log in to continue.</p>}
      <Form submit="Log in" disabled={user === "" || password === ""}
        onSubmit={async () => onDone(await call("POST /session", { body: { user, password } }))}>
        {(problem) => (
          <>
            <TextField label="User" value={user} onValue={setUser} error={problem?.errorOf("user")}
              input={{ autocomplete: "username", autoFocus: true, autocapitalize: "none" }} />
            <TextField label="Password" value={password} onValue={setPassword} error={problem?.errorOf("password")}
              input={{ type: "password", autocomplete: "current-password" }} />
          </>
        )}
      </Form>
    </Entry>
  );
}
