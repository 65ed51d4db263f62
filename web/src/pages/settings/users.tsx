// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { User } from "../../api/generated";
import { call } from "../../api/call";
import { everyPage } from "../../api/every_page";
import { usePoll } from "../../api/use_poll";
import { notify } from "../../notices";
import { Badge } from "../../parts/badge";
import { ConfirmDialog } from "../../parts/confirm_dialog";
import { DataTable } from "../../parts/data_table";
import { Loaded } from "../../parts/loaded";
import { Panel } from "../../parts/panel";
import { Time } from "../../parts/time";
import { EditUser } from "./edit_user";

const USERS_MS = 5000;

type Open = { what: "new" } | { what: "edit" | "remove"; user: User } | null;

export function Users() {
  const users = usePoll("users", (signal) => everyPage("GET /users", { signal }), USERS_MS);
  const [open, setOpen] = useState<Open>(null);
  const close = () => {
    setOpen(null);
    users.refresh();
  };
  return (
    <Panel title="Users" aside={<button type="button" class="button button-main" onClick={() => setOpen({ what: "new" })}>New user</button>}>
      <Loaded from={users}>
        {({ items }) => (
          <DataTable caption="Users" rows={items} rowKey={(user) => user.name} columns={[
            { title: "Name", cell: (user) => <strong>{user.name}</strong> },
            { title: "Role", cell: (user) => user.role },
            { title: "Password", cell: (user) => user.has_password ? "set" : <Badge tone="warn">not set: cannot log in</Badge> },
            { title: "Created", cell: (user) => <Time at={user.created} /> },
            { title: "Last login", cell: (user) => <Time at={user.last_login} /> },
            { title: "Actions", quiet: true, cell: (user) => (
              <div class="actions actions-end">
                <button type="button" class="button" aria-label={`Edit ${user.name}`} onClick={() => setOpen({ what: "edit", user })}>Edit…</button>
                <button type="button" class="button" aria-label={`Remove ${user.name}`} onClick={() => setOpen({ what: "remove", user })}>Remove…</button>
              </div>
            ) },
          ]} />
        )}
      </Loaded>
      {open?.what === "new" && <EditUser user={null} onClose={close} />}
      {open?.what === "edit" && <EditUser user={open.user} onClose={close} />}
      {open?.what === "remove" && <RemoveUser user={open.user} onClose={close} />}
    </Panel>
  );
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
