// SPDX-License-Identifier: Apache-2.0
import type { Export } from "../../api/generated";
import { call } from "../../api/call";
import { notify } from "../../notices";
import { ConfirmDialog } from "../../parts/confirm_dialog";

export function RemoveExport({ of, onClose }: { of: Export; onClose: () => void }) {
  return (
    <ConfirmDialog title={`Remove the export ${of.path}`} name={of.path} what="export's path" submit="Remove"
      onClose={onClose} onConfirm={async () => {
        await call("DELETE /exports/{id}", { path: { id: of.id } });
        notify(`${of.path} is no longer exported.`);
      }}>
      <p>Clients that have mounted it get stale filehandles at once and lose access to its memory. The files are kept.</p>
    </ConfirmDialog>
  );
}
