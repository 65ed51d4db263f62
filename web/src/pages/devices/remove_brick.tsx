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
      <p>The server forgets this device. It is refused while a file has data there
        {brick.used_bytes > 0 && <>; now {bytesText(brick.used_bytes)} of files are there</>}. What is on the device stays on it.</p>
    </ConfirmDialog>
  );
}
