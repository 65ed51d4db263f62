// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "./dialog";
import { Form } from "./form";
import { TextField } from "./text_field";

interface Props {
  title: string;
  // What must be typed.
  name: string;
  // What "name" is: "export's path".
  what: string;
  submit: string;
  onConfirm: () => Promise<void>;
  onClose: () => void;
  // What will be lost, and for whom.
  children: ComponentChildren;
}

// What cannot be taken back is confirmed by typing its name.
export function ConfirmDialog({ title, name, what, submit, onConfirm, onClose, children }: Props) {
  const [typed, setTyped] = useState("");
  return (
    <Dialog title={title} onClose={onClose}>
      <Form submit={submit} danger disabled={typed !== name} onCancel={onClose} onSubmit={async () => {
        await onConfirm();
        onClose();
      }}>
        {() => (
          <>
            {children}
            <TextField label={`Type the ${what} to confirm`} value={typed} onValue={setTyped}
              hint={<code class="wrap">{name}</code>} input={{ autocomplete: "off", autoFocus: true }} />
          </>
        )}
      </Form>
    </Dialog>
  );
}
