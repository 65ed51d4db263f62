// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Session, Setup } from "../../api/generated";
import { call } from "../../api/call";
import { asProblem } from "../../api/problem";
import { Form } from "../../parts/form";
import { TextField } from "../../parts/text_field";
import { passwordFault } from "../settings/password";
import { Entry } from "./entry";

interface Props {
  setup: Setup;
  onDone: (session: Session) => void;
  // Somebody else was faster.
  onSetUpElsewhere: () => void;
}

// Sets the first password. The one-time token proves that its user can read root's files on the server.
export function FirstStart({ setup, onDone, onSetUpElsewhere }: Props) {
  const [token, setToken] = useState("");
  const [password, setPassword] = useState("");
  const [again, setAgain] = useState("");
  const fault = passwordFault(password, again);
  const send = async () => {
    try {
      onDone(await call("POST /setup", { body: { token: token.trim(), password } }));
    } catch (error) {
      if (asProblem(error).kind === "setup-done") onSetUpElsewhere();
      throw error;
    }
  };
  return (
    <Entry title="First start">
      <p>No password is set yet, so the console can only be reached from the server itself. Prove that you administer
        this server, and choose a password for the user <code>admin</code>.</p>
      <Form submit="Set password" disabled={token.trim() === "" || password === "" || fault !== undefined} onSubmit={send}>
        {(problem) => (
          <>
            <TextField label="One-time token" value={token} onValue={setToken} error={problem?.errorOf("token")}
              hint={setup.token_file
                ? <>On the server, as root: <code class="wrap">cat {setup.token_file}</code></>
                : "The server's log names the file that contains it."}
              input={{ autocomplete: "off", autoFocus: true }} />
            <TextField label="New password" value={password} onValue={setPassword} error={problem?.errorOf("password")}
              hint="At least 10 characters." input={{ type: "password", autocomplete: "new-password" }} />
            <TextField label="Repeat new password" value={again} onValue={setAgain} error={again === "" ? undefined : fault}
              input={{ type: "password", autocomplete: "new-password" }} />
          </>
        )}
      </Form>
    </Entry>
  );
}
