// SPDX-License-Identifier: Apache-2.0
import type { Brick } from "../../api/generated";
import { call } from "../../api/call";
import { bytesText } from "../../format/number";
import { notify } from "../../notices";
import { ConfirmDialog } from "../../parts/confirm_dialog";
import { brickName } from "./brick_words";

export function FormatBrick({ brick, onClose }: { brick: Brick; onClose: () => void }) {
  return (
    <ConfirmDialog title={`Format ${brickName(brick)}`} name={brick.id} what="device's id" submit="Erase everything on it"
      onClose={onClose} onConfirm={async () => {
        await call("POST /bricks/{brick}/format", { path: { brick: brick.id }, body: { confirm: brick.id } });
        notify(`Formatting ${brickName(brick)}: see the jobs below.`);
      }}>
      <p>All {bytesText(brick.capacity_bytes)} of it will be erased. This is refused while it holds data of a file
        {brick.used_bytes > 0 && <>; it now holds {bytesText(brick.used_bytes)} of files</>}.</p>
    </ConfirmDialog>
  );
}
