// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Client } from "../../api/generated";
import { call } from "../../api/call";
import { asProblem } from "../../api/problem";
import { usePoll } from "../../api/use_poll";
import { HistorySection } from "../../history/history_section";
import { PageHead } from "../../parts/page_head";
import { Panel } from "../../parts/panel";
import { ProblemNote } from "../../parts/problem_note";
import { go, hrefWith, useRoute } from "../../route";
import { ClientPanel } from "./client_panel";
import { ClientTable } from "./client_table";
import { clientName } from "./client_words";
import { ExpelClient } from "./expel_client";

const CLIENT_MS = 1000;
// What belongs to the client before: where its layouts were looked at.
const OTHER_LAYOUTS = { "layouts.search": null, "layouts.sort": null, "layouts.page": null };

export function Clients() {
  const [expelled, setExpelled] = useState<Client | null>(null);
  const [changes, setChanges] = useState(0);
  const chosen = useRoute().query.get("client");
  return (
    <>
      <PageHead title="Clients" lead="Which hosts have mounted this server, and which memory each can reach now." />
      <Panel title="All clients">
        <ClientTable chosen={chosen} onExpel={setExpelled} changes={changes}
          onChoose={(id) => go(hrefWith({ client: id === chosen ? null : id, ...OTHER_LAYOUTS }), "replace")} />
      </Panel>
      {chosen && <ChosenClient key={chosen} id={chosen} />}
      {expelled && <ExpelClient client={expelled} onClose={() => {
        setExpelled(null);
        setChanges(changes + 1);
      }} />}
    </>
  );
}

// Whichever page of the list it stands on.
function ChosenClient({ id }: { id: string }) {
  const polled = usePoll(`client ${id}`, (signal) => clientOf(id, signal), CLIENT_MS);
  if (polled.value === null) return <p class="note">The client {id} no longer exists.</p>;
  return <><ProblemNote problem={polled.problem} retry={polled.refresh} />{polled.value && <><ClientPanel client={polled.value} /><ClientHistory client={polled.value} /></>}</>;
}

function ClientHistory({ client }: { client: Client }) {
  const verbs = client.bricks.some(({ transport }) => transport === "verbs");
  return (
    <HistorySection of="client" what="client" choices={[{ id: client.id, label: clientName(client) }]}
      note={() => verbs && (
        <p class="note">
          Only what goes through the server: this client has an RDMA device, which moves its bytes without the server's CPU, which cannot count them. The
          server. The mount counts them: <code>pnfsrdma stat</code>.
        </p>
      )} />
  );
}

// null: there is no such client (any more).
async function clientOf(id: string, signal: AbortSignal): Promise<Client | null> {
  try {
    return await call("GET /clients/{id}", { path: { id }, signal });
  } catch (error) {
    if (asProblem(error).status === 404) return null;
    throw error;
  }
}
