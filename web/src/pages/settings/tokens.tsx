// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Token } from "../../api/generated";
import { call } from "../../api/call";
import { everyPage } from "../../api/every_page";
import { usePoll } from "../../api/use_poll";
import { notify } from "../../notices";
import { ConfirmDialog } from "../../parts/confirm_dialog";
import { DataTable } from "../../parts/data_table";
import { Empty } from "../../parts/empty";
import { Loaded } from "../../parts/loaded";
import { Panel } from "../../parts/panel";
import { Time } from "../../parts/time";
import { NewToken } from "./new_token";

const TOKENS_MS = 5000;

// For programs: they send a token instead of logging in.
export function Tokens() {
  const tokens = usePoll("tokens", (signal) => everyPage("GET /tokens", { signal }), TOKENS_MS);
  const [making, setMaking] = useState(false);
  const [removed, setRemoved] = useState<Token | null>(null);
  const close = () => {
    setMaking(false);
    setRemoved(null);
    tokens.refresh();
  };
  const make = <button type="button" class="button button-main" onClick={() => setMaking(true)}>New token</button>;
  return (
    <Panel title="Tokens for programs" aside={make}>
      <Loaded from={tokens}>
        {({ items }) => items.length === 0
          ? <Empty title="No tokens yet."><p>Programs send a token instead of logging in: <code>Authorization: Bearer …</code></p></Empty>
          : (
            <DataTable caption="Tokens" rows={items} rowKey={(token) => token.id} columns={[
              { title: "Name", cell: (token) => <strong>{token.name}</strong> },
              { title: "User", cell: (token) => token.user },
              { title: "Role", cell: (token) => token.role },
              { title: "Created", cell: (token) => <Time at={token.created} /> },
              { title: "Expires", cell: (token) => <Time at={token.expires} /> },
              { title: "Last used", cell: (token) => <Time at={token.last_used} /> },
              { title: "Actions", quiet: true, cell: (token) =>
                <button type="button" class="button" aria-label={`Remove ${token.name}`} onClick={() => setRemoved(token)}>Remove…</button> },
            ]} />
          )}
      </Loaded>
      {making && <NewToken onClose={close} />}
      {removed && (
        <ConfirmDialog title={`Remove the token ${removed.name}`} name={removed.name} what="token's name" submit="Remove" onClose={close}
          onConfirm={async () => {
            await call("DELETE /tokens/{id}", { path: { id: removed.id } });
            notify(`Removed the token ${removed.name}.`);
          }}>
          <p>Programs that use it are refused at once.</p>
        </ConfirmDialog>
      )}
    </Panel>
  );
}
