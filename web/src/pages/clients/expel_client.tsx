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
      <p>{bytesText(client.bytes)} of memory become unreachable for it at once; {plural(client.opens, "open file")}, its locks
        and unflushed writes are lost. It may return as a new client: to keep it away, remove its network from the exports.</p>
    </ConfirmDialog>
  );
}
