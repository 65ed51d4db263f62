// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { call, callFor } from "../../api/call";
import { asProblem, type Problem } from "../../api/problem";
import { notify } from "../../notices";
import { Dialog } from "../../parts/dialog";
import { Form } from "../../parts/form";
import { ProblemNote } from "../../parts/problem_note";
import { Conflict } from "./conflict";
import { ExportFields } from "./export_fields";
import { bodyOf, fault, rulesOf, type ExportRules } from "./export_rules";

interface Seen {
  rules: ExportRules;
  etag: string;
}

async function read(id: number): Promise<Seen> {
  const { value, etag } = await callFor("GET /exports/{id}", { path: { id } });
  return { rules: rulesOf(value), etag: etag ?? "" };
}

// Changes an export as it was seen. When somebody else was faster nothing is overwritten: both are shown, and the
// reader chooses.
export function EditExport({ id, path, onClose }: { id: number; path: string; onClose: () => void }) {
  const [seen, setSeen] = useState<Seen>();
  const [rules, setRules] = useState<ExportRules>();
  const [theirs, setTheirs] = useState<Seen>();
  const [failed, setFailed] = useState<Problem>();

  useEffect(() => {
    read(id).then((first) => {
      setSeen(first);
      setRules(first.rules);
    }, (error: unknown) => setFailed(asProblem(error)));
  }, [id]);

  const save = async () => {
    if (!rules || !seen) return;
    try {
      await call("PUT /exports/{id}", { path: { id }, body: bodyOf(rules), ifMatch: seen.etag });
    } catch (error) {
      if (asProblem(error).kind !== "changed-meanwhile") throw error;
      setTheirs(await read(id));
      return;
    }
    notify(`Changed ${path}.`);
    onClose();
  };
  const choose = (whose: "theirs" | "mine") => {
    if (!theirs) return;
    setSeen(theirs);
    if (whose === "theirs") setRules(theirs.rules);
    setTheirs(undefined);
  };

  return (
    <Dialog title={`Edit ${path}`} onClose={onClose}>
      <ProblemNote problem={failed} />
      {rules && (
        <Form submit="Save" disabled={fault(rules) !== undefined || theirs !== undefined} onCancel={onClose} onSubmit={save}>
          {(problem) => (
            <>
              <ExportFields rules={rules} onRules={setRules} problem={problem} pathFixed />
              {theirs && <Conflict theirs={theirs.rules} mine={rules} onChoice={choose} />}
            </>
          )}
        </Form>
      )}
    </Dialog>
  );
}
