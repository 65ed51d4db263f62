// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { call } from "../../api/call";
import { notify } from "../../notices";
import { Facts } from "../../parts/facts";
import { Form } from "../../parts/form";
import { Panel } from "../../parts/panel";
import { TextField } from "../../parts/text_field";
import { Time } from "../../parts/time";
import { useSession } from "../../session";
import { passwordFault } from "./password";

const ROLES = {
  viewer: "can see everything and change nothing",
  operator: "can also revoke layouts, expel clients and run checks",
  admin: "can do everything",
};

export function Account() {
  const { session } = useSession();
  return (
    <div class="columns">
      <Panel title="Your account">
        <Facts of={[
          ["User", session.user],
          ["Role", <>{session.role} <span class="muted">{ROLES[session.role]}</span></>],
          ["Logged in with", session.method],
          ["Session ends", session.expires ? <Time at={session.expires} /> : "never"],
        ]} />
      </Panel>
      {session.method === "password" && <Panel title="Change your password"><PasswordForm /></Panel>}
    </div>
  );
}

function PasswordForm() {
  const [old_password, setOld] = useState("");
  const [new_password, setNew] = useState("");
  const [again, setAgain] = useState("");
  const fault = passwordFault(new_password, again);
  return (
    <Form submit="Change password" disabled={old_password === "" || fault !== undefined} onSubmit={async () => {
      await call("PUT /session/password", { body: { old_password, new_password } });
      [setOld, setNew, setAgain].forEach((set) => set(""));
      notify("Password changed. Your other sessions have ended.");
    }}>
      {(problem) => (
        <>
          <TextField label="Current password" value={old_password} onValue={setOld} error={problem?.errorOf("old_password")}
            input={{ type: "password", autocomplete: "current-password" }} />
          <TextField label="New password" value={new_password} onValue={setNew} error={problem?.errorOf("new_password")}
            hint="At least 10 characters." input={{ type: "password", autocomplete: "new-password" }} />
          <TextField label="Repeat new password" value={again} onValue={setAgain} error={again === "" ? undefined : fault}
            input={{ type: "password", autocomplete: "new-password" }} />
        </>
      )}
    </Form>
  );
}
