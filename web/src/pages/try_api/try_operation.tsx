// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { rawCall } from "../../api/call";
import { Badge } from "../../parts/badge";
import { Field } from "../../parts/field";
import { Form } from "../../parts/form";
import { Panel } from "../../parts/panel";
import { TextField } from "../../parts/text_field";
import { readable, requestPath, type TriedOperation } from "./api_operations";

export function TryOperation({ operation }: { operation: TriedOperation }) {
  const [values, setValues] = useState<Record<string, string>>({});
  const [body, setBody] = useState(operation.body ?? "");
  const [answer, setAnswer] = useState<{ status: number; text: string }>();
  const path = requestPath(operation, values);
  const changes = operation.method !== "GET";
  return (
    <Panel title={`${operation.method} ${operation.path}`} aside={<Badge tone={operation.role === "viewer" || operation.role === "public" ? "quiet" : "warn"}>{operation.role}</Badge>}>
      <p><strong>{operation.summary}.</strong> {operation.description}</p>
      <Form submit="Send" danger={changes} disabled={path === undefined} onSubmit={async () => {
        setAnswer(await rawCall(operation.method, path ?? "", operation.body === undefined ? undefined : body));
      }}>
        {() => (
          <>
            {operation.parameters.map(({ name, required, description, example }) => (
              <TextField key={name} label={required ? name : `${name} (optional)`} value={values[name] ?? ""} hint={description}
                onValue={(value) => setValues({ ...values, [name]: value })} input={{ autocomplete: "off", placeholder: example }} />
            ))}
            {operation.body !== undefined && (
              <Field label="Body" hint="JSON; this is an example.">
                {(ties) => <textarea {...ties} rows={10} spellcheck={false} value={body} onInput={(event) => setBody(event.currentTarget.value)} />}
              </Field>
            )}
            {changes && <p class="hint">The request is sent to this server and changes it.</p>}
          </>
        )}
      </Form>
      {answer && (
        <>
          <h3>Answer <Badge tone={answer.status < 400 ? "good" : "bad"}>{answer.status}</Badge></h3>
          <pre class="shell-line" tabIndex={0} aria-label="Answer">{readable(answer.text)}</pre>
        </>
      )}
    </Panel>
  );
}
