// SPDX-License-Identifier: Apache-2.0
import type { Brick } from "../../api/generated";
import { call } from "../../api/call";
import { bytesText } from "../../format/number";
import { notify } from "../../notices";
import { ConfirmDialog } from "../../parts/confirm_dialog";
import { brickName } from "./brick_words";

export function RemoveBrick({ brick, onClose }: { brick: Brick; onClose: () => void }) {
  return (
    <ConfirmDialog title={`Remove ${brickName(brick)}`} name={brickName(brick)} what="device's name" submit="Remove"
      onClose={onClose} onConfirm={async () => {
        await call("DELETE /bricks/{brick}", { path: { brick: brick.id } });
        notify(`Removed ${brickName(brick)}.`);
      }}>
      <p>The server forgets this device. This is refused while it holds data of a file
        {brick.used_bytes > 0 && <>; it now holds {bytesText(brick.used_bytes)} of files</>}. Its contents are kept.</p>
    </ConfirmDialog>
  );
}
