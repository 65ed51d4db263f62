// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import type { Quota } from "../../api/generated";
import { call, callFor } from "../../api/call";
import { asProblem, type Problem } from "../../api/problem";
import { notify } from "../../notices";
import { Dialog } from "../../parts/dialog";
import { Form } from "../../parts/form";
import { ProblemNote } from "../../parts/problem_note";
import { LimitFields } from "./limit_fields";
import { anyFault, changesOf, quotaName, textsOf, type LimitTexts } from "./quota_words";

// Changes limits as they were seen: what somebody else has changed meanwhile is not overwritten.
export function EditLimits({ of, onClose }: { of: Quota; onClose: () => void }) {
  const path = { kind: of.kind, who: String(of.id) };
  const [seen, setSeen] = useState<{ texts: LimitTexts; etag: string }>();
  const [texts, setTexts] = useState<LimitTexts>();
  const [failed, setFailed] = useState<Problem>();
  useEffect(() => {
    callFor("GET /quotas/{kind}/{who}", { path }).then(({ value, etag }) => {
      setSeen({ texts: textsOf(value), etag: etag ?? "" });
      setTexts(textsOf(value));
    }, (error: unknown) => setFailed(asProblem(error)));
  }, [of.kind, of.id]);
  const changes = seen && texts ? changesOf(seen.texts, texts) : {};
  return (
    <Dialog title={`Limits of the ${of.kind} ${quotaName(of)}`} onClose={onClose}>
      <ProblemNote problem={failed} />
      {seen && texts && (
        <Form submit="Save" disabled={anyFault(texts) || Object.keys(changes).length === 0} onCancel={onClose} onSubmit={async () => {
          await call("PATCH /quotas/{kind}/{who}", { path, body: changes, ifMatch: seen.etag });
          notify(`Changed the limits of the ${of.kind} ${quotaName(of)}.`);
          onClose();
        }}>
          {(problem) => <LimitFields texts={texts} onTexts={setTexts} problem={problem} focus />}
        </Form>
      )}
    </Dialog>
  );
}
