// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { call } from "../../api/call";
import { notify } from "../../notices";
import { Dialog } from "../../parts/dialog";
import { Form } from "../../parts/form";
import { TextField } from "../../parts/text_field";
import { addressFault } from "./brick_address";
import { brickName } from "./brick_words";

export function AddBrick({ onClose }: { onClose: () => void }) {
  const [address, setAddress] = useState("");
  const [name, setName] = useState("");
  const fault = address === "" ? undefined : addressFault(address);
  return (
    <Dialog title="Add a device" onClose={onClose}>
      <Form submit="Add" disabled={address === "" || fault !== undefined} onCancel={onClose} onSubmit={async () => {
        const brick = await call("POST /bricks", { body: { address, name } });
        notify(`Added ${brickName(brick)}: it is ready for new files.`);
        onClose();
      }}>
        {(problem) => (
          <>
            <p>The brick must run, be formatted (<code>pnfsrdma-brickd --format</code>), and hold no other server's data.</p>
            <TextField label="Control address" value={address} onValue={setAddress} error={problem?.errorOf("address") ?? fault}
              hint={<>As in its configuration: <code>unix:/run/pnfsrdma/brick.sock</code> or <code>tcp:192.0.2.7:20050</code></>}
              input={{ autocomplete: "off", autoFocus: true }} />
            <TextField label="Name" value={name} onValue={setName} error={problem?.errorOf("name")}
              hint="For example “rack 3”. Without a name the device is shown by its address." input={{ autocomplete: "off", maxLength: 63 }} />
          </>
        )}
      </Form>
    </Dialog>
  );
}
