// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Client } from "../../api/generated";
import { everyPage } from "../../api/every_page";
import { usePoll } from "../../api/use_poll";
import { Empty } from "../../parts/empty";
import { Link } from "../../parts/link";
import { Loaded } from "../../parts/loaded";
import { PageHead } from "../../parts/page_head";
import { Panel } from "../../parts/panel";
import { go, useRoute } from "../../route";
import { ClientPanel } from "./client_panel";
import { ClientTable } from "./client_table";
import { ExpelClient } from "./expel_client";

const CLIENTS_MS = 1000;

export function Clients() {
  const clients = usePoll("clients", (signal) => everyPage("GET /clients", { signal }), CLIENTS_MS);
  const [expelled, setExpelled] = useState<Client | null>(null);
  const chosen = useRoute().query.get("client");
  return (
    <>
      <PageHead title="Clients" lead="Who mounts this server, and which memory each can reach now." />
      <Loaded from={clients}>
        {({ items, truncated }) => {
          const client = items.find((candidate) => candidate.id === chosen);
          return (
            <>
              <Panel title="All clients" aside={<span class="muted">{items.length}{truncated && "+"}</span>}>
                {items.length === 0
                  ? <Empty title="No client is there."><p>Mount an export on a client; it appears here.</p><Link href="/exports" class="button">See the exports</Link></Empty>
                  : <ClientTable clients={items} chosen={chosen} onExpel={setExpelled}
                      onChoose={(id) => go(id === chosen ? "/clients" : `/clients?client=${id}`, "replace")} />}
              </Panel>
              {client && <ClientPanel client={client} />}
            </>
          );
        }}
      </Loaded>
      {expelled && <ExpelClient client={expelled} onClose={() => {
        setExpelled(null);
        clients.refresh();
      }} />}
    </>
  );
}
