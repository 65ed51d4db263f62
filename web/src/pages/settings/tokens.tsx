// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Token } from "../../api/generated";
import { call } from "../../api/call";
import { notify } from "../../notices";
import { DataList } from "../../list/data_list";
import { listOf } from "../../list/source";
import { ConfirmDialog } from "../../parts/confirm_dialog";
import { Empty } from "../../parts/empty";
import { Panel } from "../../parts/panel";
import { Time } from "../../parts/time";
import { NewToken } from "./new_token";

const TOKENS_MS = 5000;

// For programs: they send a token instead of logging in.
export function Tokens() {
  const [changes, setChanges] = useState(0);
  const [making, setMaking] = useState(false);
  const [removed, setRemoved] = useState<Token | null>(null);
  const close = () => {
    setMaking(false);
    setRemoved(null);
    setChanges((old) => old + 1);
  };
  const make = <button type="button" class="button button-main" onClick={() => setMaking(true)}>New token</button>;
  return (
    <Panel title="Tokens for programs" aside={make}>
      <DataList caption="Tokens" from={listOf("GET /tokens", TOKENS_MS)} rowKey={(token) => token.id} sort="name" changes={changes}
        empty={<Empty title="No tokens yet."><p>Programs send a token instead of logging in: <code>Authorization: Bearer …</code></p></Empty>} columns={[
          { title: "Name", value: (token) => token.name, cell: (token) => <strong>{token.name}</strong> },
          { title: "User", value: (token) => token.user, cell: (token) => token.user },
          { title: "Role", value: (token) => token.role, cell: (token) => token.role },
          { title: "Created", value: (token) => token.created, cell: (token) => <Time at={token.created} /> },
          { title: "Expires", value: (token) => token.expires, cell: (token) => <Time at={token.expires} /> },
          { title: "Last used", value: (token) => token.last_used, cell: (token) => <Time at={token.last_used} /> },
          { title: "Actions", quiet: true, cell: (token) =>
            <button type="button" class="button" aria-label={`Remove ${token.name}`} onClick={() => setRemoved(token)}>Remove…</button> },
        ]} />
      {making && <NewToken onClose={close} />}
      {removed && (
        <ConfirmDialog title={`Remove the token ${removed.name}`} name={removed.name} what="token's name" submit="Remove" onClose={close}
          onConfirm={async () => {
            await call("DELETE /tokens/{id}", { path: { id: removed.id } });
            notify(`Removed the token ${removed.name}.`);
          }}>
          <p>Programs that use it lose access at once.</p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}
