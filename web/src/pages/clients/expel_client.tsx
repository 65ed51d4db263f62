// SPDX-License-Identifier: Apache-2.0
import type { Client } from "../../api/generated";
import { call } from "../../api/call";
import { bytesText, plural } from "../../format/number";
import { notify } from "../../notices";
import { ConfirmDialog } from "../../parts/confirm_dialog";
import { clientName } from "./client_words";

export function ExpelClient({ client, onClose }: { client: Client; onClose: () => void }) {
  return (
    <ConfirmDialog title={`Expel ${clientName(client)}`} name={clientName(client)} what="client's name" submit="Expel"
      onClose={onClose} onConfirm={async () => {
        await call("DELETE /clients/{id}", { path: { id: client.id } });
        notify(`Expelled ${clientName(client)}: no device lets it in.`);
      }}>
      <p>{bytesText(client.bytes)} of memory go out of its reach at once; {plural(client.opens, "open file")} and its locks are lost,
        and what it had not flushed. It may come back as a new client: to keep it away, take its network out of the exports.</p>
    </ConfirmDialog>
  );
}
