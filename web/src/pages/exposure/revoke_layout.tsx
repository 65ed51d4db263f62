// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import type { Client, Layout } from "../../api/generated";
import { call } from "../../api/call";
import { asProblem } from "../../api/problem";
import { plural } from "../../format/number";
import { notify } from "../../notices";
import { Dialog } from "../../parts/dialog";
import { Form } from "../../parts/form";
import { useMay } from "../../session";
import { clientName } from "../clients/client_words";
import { ExpelClient } from "../clients/expel_client";

export type Revocable = Pick<Layout, "id" | "client" | "client_name" | "path" | "inode">;

interface Props {
  layout: Revocable;
  onChanged: () => void;
  onClose: () => void;
}

// Takes a layout from its holder, after asking, and says whether the holder got it again.
export function RevokeLayout({ layout, onChanged, onClose }: Props) {
  const [done, setDone] = useState<{ grants: number; took: number } | null>(null);
  const [expelled, setExpelled] = useState<Client | null>(null);
  const file = layout.path ?? `inode ${layout.inode}`;
  const name = clientName({ name: layout.client_name, id: layout.client });
  if (expelled) return <ExpelClient client={expelled} onClose={onClose} />;
  const revoke = async () => {
    const begin = performance.now();
    try {
      const { grants } = await call("DELETE /layouts/{id}", { path: { id: layout.id } });
      setDone({ grants, took: Math.round(performance.now() - begin) });
    } catch (error) {
      if (asProblem(error).status !== 404) throw error;
      notify("The client had already returned that layout.");
      onClose();
    }
    onChanged();
  };
  return (
    <Dialog title={`Revoke ${file}`} onClose={onClose}>
      {done
        ? <Outcome layout={layout} name={name} {...done} onExpel={setExpelled} onClose={onClose} />
        : (
          <Form submit="Revoke" danger onSubmit={revoke} onCancel={onClose}>
            {() => <p>{name} loses access to the memory of <code class="wrap">{file}</code> at once. Writes
              that it has not flushed are lost. It may get a new layout when it uses the file again.</p>}
          </Form>
        )}
    </Dialog>
  );
}

interface OutcomeProps {
  layout: Revocable;
  name: string;
  grants: number;
  took: number;
  onExpel: (client: Client) => void;
  onClose: () => void;
}

function Outcome({ layout, name, grants, took, onExpel, onClose }: OutcomeProps) {
  const again = useGrantedAgain(layout.id);
  const may = useMay();
  const expel = async () => {
    try {
      onExpel(await call("GET /clients/{id}", { path: { id: layout.client } }));
    } catch (error) {
      notify(asProblem(error).message, "bad");
    }
  };
  return (
    <>
      <p>{plural(grants, "handle")} dead after {took} ms.</p>
      <p role="status">{again === undefined
        ? "Not granted again so far."
        : `Granted again after ${again.toFixed(1)} s: ${name} still uses the file. Only expelling the client removes all its access.`}</p>
      <div class="actions actions-end">
        {may("DELETE /clients/{id}") &&
          <button type="button" class="button button-danger" onClick={() => void expel()}>Expel {name}…</button>}
        <button type="button" class="button button-main" onClick={onClose}>Close</button>
      </div>
    </>
  );
}

const LOOK_MS = 200;

// After how many seconds the same client held the layout again; undefined: it does not.
function useGrantedAgain(id: string): number | undefined {
  const [after, setAfter] = useState<number>();
  useEffect(() => {
    const stop = new AbortController();
    const begin = performance.now();
    const look = async () => {
      while (!stop.signal.aborted) {
        try {
          const { layout } = await call("GET /layouts/{id}", { path: { id }, signal: stop.signal });
          const seconds = (performance.now() - begin) / 1000;
          return setAfter(Math.max(0, seconds - layout.age_seconds));
        } catch {
          await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
        }
      }
    };
    void look();
    return () => stop.abort();
  }, [id]);
  return after;
}
