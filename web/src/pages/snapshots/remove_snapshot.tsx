// SPDX-License-Identifier: Apache-2.0
import type { Snapshot } from "../../api/generated";
import { call } from "../../api/call";
import { notify } from "../../notices";
import { ConfirmDialog } from "../../parts/confirm_dialog";

export function RemoveSnapshot({ of, onClose }: { of: Snapshot; onClose: () => void }) {
  return (
    <ConfirmDialog title={`Remove the snapshot ${of.name}`} name={of.name} what="snapshot's name" submit="Remove"
      onClose={onClose} onConfirm={async () => {
        await call("DELETE /snapshots/{id}", { path: { id: of.id } });
        notify(`Removed the snapshot ${of.name}. Its memory is being freed.`);
      }}>
      <p>Files that only this snapshot has are lost. Programs that read them get an error.</p>
    </ConfirmDialog>
  );
}
