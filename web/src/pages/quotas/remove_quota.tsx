// SPDX-License-Identifier: Apache-2.0
import type { Quota } from "../../api/generated";
import { call } from "../../api/call";
import { notify } from "../../notices";
import { ConfirmDialog } from "../../parts/confirm_dialog";
import { quotaName } from "./quota_words";

export function RemoveQuota({ of, onClose }: { of: Quota; onClose: () => void }) {
  const name = quotaName(of);
  const tree = of.kind === "tree";
  return (
    <ConfirmDialog title={tree ? `Remove the quota tree ${name}` : `Remove the limits of the ${of.kind} ${name}`} name={name}
      what={tree ? "tree's path" : `${of.kind}'s name`} submit="Remove" onClose={onClose} onConfirm={async () => {
        await call("DELETE /quotas/{kind}/{who}", { path: { kind: of.kind, who: String(of.id) } });
        notify(tree ? `${name} is no quota tree any more.` : `Removed the limits of the ${of.kind} ${name}.`);
      }}>
      <p>{tree ? "The directory and its files are kept; they count for no tree any more." : "Its files are kept and still counted; nothing limits them."}</p>
    </ConfirmDialog>
  );
}
