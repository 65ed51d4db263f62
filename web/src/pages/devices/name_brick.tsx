// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Brick } from "../../api/generated";
import { call, callFor } from "../../api/call";
import { Dialog } from "../../parts/dialog";
import { Form } from "../../parts/form";
import { TextField } from "../../parts/text_field";
import { brickName } from "./brick_words";

export function NameBrick({ brick, onClose }: { brick: Brick; onClose: () => void }) {
  const [name, setName] = useState(brick.name);
  return (
    <Dialog title={`Rename ${brickName(brick)}`} onClose={onClose}>
      <Form submit="Rename" disabled={name === brick.name} onCancel={onClose} onSubmit={async () => {
        const path = { brick: brick.id };
        const { etag } = await callFor("GET /bricks/{brick}", { path });
        await call("PATCH /bricks/{brick}", { path, body: { name }, ifMatch: etag ?? "" });
        onClose();
      }}>
        {(problem) => (
          <TextField label="Name" value={name} onValue={setName} error={problem?.errorOf("name")}
            hint={<>Leave it empty to show the device by its address: <code class="wrap">{brick.address}</code></>}
            input={{ autocomplete: "off", autoFocus: true, maxLength: 63 }} />
        )}
      </Form>
    </Dialog>
  );
}
