// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { call } from "../../api/call";
import { notify } from "../../notices";
import { Dialog } from "../../parts/dialog";
import { Form } from "../../parts/form";
import { TextField } from "../../parts/text_field";
import { nameFault } from "./snapshot_name";

export function NewSnapshot({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  return (
    <Dialog title="New snapshot" onClose={onClose}>
      <Form submit="Take it" disabled={nameFault(name) !== undefined} onCancel={onClose} onSubmit={async () => {
        const taken = await call("POST /snapshots", { body: name === "" ? {} : { name } });
        notify(`Took the snapshot ${taken.name}.`);
        onClose();
      }}>
        {(problem) => (
          <>
            <p>All files of this server, of all exports. Clients that write wait for a moment.</p>
            <TextField label="Name" value={name} onValue={setName} error={problem?.errorOf("name") ?? nameFault(name)}
              hint="Of its directory in .snapshots. Empty: the time, in UTC." input={{ autocomplete: "off", autoFocus: true }} />
          </>
        )}
      </Form>
    </Dialog>
  );
}
