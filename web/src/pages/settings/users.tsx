// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { User } from "../../api/generated";
import { call } from "../../api/call";
import { notify } from "../../notices";
import { DataList } from "../../list/data_list";
import { listOf } from "../../list/source";
import { Badge } from "../../parts/badge";
import { ConfirmDialog } from "../../parts/confirm_dialog";
import { Panel } from "../../parts/panel";
import { Time } from "../../parts/time";
import { EditUser } from "./edit_user";

const USERS_MS = 5000;

type Open = { what: "new" } | { what: "edit" | "remove"; user: User } | null;

export function Users() {
  const [changes, setChanges] = useState(0);
  const [open, setOpen] = useState<Open>(null);
  const close = () => {
    setOpen(null);
    setChanges((old) => old + 1);
  };
  return (
    <Panel title="Users" aside={<button type="button" class="button button-main" onClick={() => setOpen({ what: "new" })}>New user</button>}>
      <DataList caption="Users" from={listOf("GET /users", USERS_MS)} rowKey={(user) => user.name} sort="name" changes={changes}
        empty={<p class="muted">None.</p>} columns={[
          { title: "Name", value: (user) => user.name, cell: (user) => <strong>{user.name}</strong> },
          { title: "Role", value: (user) => user.role, cell: (user) => user.role },
          { title: "Password", value: passwordText, cell: (user) => user.has_password ? passwordText(user) : <Badge tone="warn">{passwordText(user)}</Badge> },
          { title: "Created", value: (user) => user.created, cell: (user) => <Time at={user.created} /> },
          { title: "Last login", value: (user) => user.last_login, cell: (user) => <Time at={user.last_login} /> },
          { title: "Actions", quiet: true, cell: (user) => (
            <div class="actions actions-end">
              <button type="button" class="button" aria-label={`Edit ${user.name}`} onClick={() => setOpen({ what: "edit", user })}>Edit…</button>
              <button type="button" class="button" aria-label={`Remove ${user.name}`} onClick={() => setOpen({ what: "remove", user })}>Remove…</button>
            </div>
          ) },
        ]} />
      {open?.what === "new" && <EditUser user={null} onClose={close} />}
      {open?.what === "edit" && <EditUser user={open.user} onClose={close} />}
      {open?.what === "remove" && <RemoveUser user={open.user} onClose={close} />}
    </Panel>
  );
}

function passwordText(user: User): string {
  return user.has_password ? "set" : "not set: cannot log in";
}

function RemoveUser({ user, onClose }: { user: User; onClose: () => void }) {
  return (
    <ConfirmDialog title={`Remove ${user.name}`} name={user.name} what="user's name" submit="Remove" onClose={onClose}
      onConfirm={async () => {
        await call("DELETE /users/{name}", { path: { name: user.name } });
        notify(`Removed ${user.name}.`);
      }}>
      <p>The user's sessions end and their tokens stop working at once.</p>
    </ConfirmDialog>
  );
}
