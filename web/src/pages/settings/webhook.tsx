// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Webhook as Target, WebhookPut } from "../../api/generated";
import { call } from "../../api/call";
import { asProblem } from "../../api/problem";
import { usePoll } from "../../api/use_poll";
import { notify } from "../../notices";
import { Facts } from "../../parts/facts";
import { Form } from "../../parts/form";
import { Loaded } from "../../parts/loaded";
import { Panel } from "../../parts/panel";
import { SelectField } from "../../parts/select_field";
import { TextField } from "../../parts/text_field";
import { Time } from "../../parts/time";

const STATUS_MS = 3000;
const SEVERITIES = [{ value: "warning", label: "all alerts" }, { value: "critical", label: "critical alerts only" }] as const;

// Where alerts are sent, and how that goes.
export function Webhook() {
  const webhook = usePoll("webhook", (signal) => call("GET /webhook", { signal }), STATUS_MS);
  return (
    <div class="columns">
      <Panel title="Send alerts to">
        <Loaded from={webhook}>
          {(value) => <TargetForm key={`${value.url} ${value.signed} ${value.ca_file} ${value.severity}`} target={value} onChanged={webhook.refresh} />}
        </Loaded>
      </Panel>
      <Panel title="Delivery">
        <Loaded from={webhook}>{(value) => value.url === null
          ? <p class="muted">No webhook is set.</p>
          : <Status target={value} onTried={webhook.refresh} />}</Loaded>
      </Panel>
    </div>
  );
}

function TargetForm({ target, onChanged }: { target: Target; onChanged: () => void }) {
  const [url, setUrl] = useState(target.url ?? "");
  const [secret, setSecret] = useState("");
  const [authority, setAuthority] = useState(target.ca_file ?? "");
  const [severity, setSeverity] = useState(target.severity);
  const unchanged = url === (target.url ?? "") && secret === "" && authority === (target.ca_file ?? "") && severity === target.severity;
  const save = async () => {
    const body: WebhookPut = { url, severity, ca_file: authority === "" ? null : authority };
    if (secret !== "") body.secret = secret;
    await call("PUT /webhook", { body });
    notify("Changed. The change survives a restart.");
    onChanged();
  };
  const remove = async () => {
    try {
      await call("DELETE /webhook");
      notify("No webhook is set.");
    } catch (error) {
      notify(asProblem(error).message, "bad");
    }
    onChanged();
  };
  return (
    <>
      <p class="muted">A POST in the format of Prometheus Alertmanager, when an alert starts firing and when it is resolved.</p>
      <Form submit="Save" disabled={unchanged || url === ""} onSubmit={save}>
        {(problem) => (
          <>
            <TextField label="URL" value={url} onValue={setUrl} error={problem?.errorOf("url")}
              hint="https:// or http://. Redirects are not followed." input={{ autocomplete: "off", inputMode: "url", maxLength: 2048 }} />
            <TextField label="Secret" value={secret} onValue={setSecret} error={problem?.errorOf("secret")}
              hint={`Signs each message (X-Pnfsrdma-Signature). ${target.signed ? "A secret is set but not shown. Leave empty to keep it." : "Empty: messages are not signed."}`}
              input={{ type: "password", autocomplete: "new-password", maxLength: 256 }} />
            <TextField label="CA file" value={authority} onValue={setAuthority} error={problem?.errorOf("ca_file")}
              hint="A PEM file on the server, for a receiver whose certificate the server does not trust by default."
              input={{ autocomplete: "off", maxLength: 1024 }} />
            <SelectField label="Severity" value={severity} onValue={setSeverity} options={[...SEVERITIES]} />
          </>
        )}
      </Form>
      {target.url !== null && <div class="actions"><button type="button" class="button" onClick={() => void remove()}>Remove webhook</button></div>}
    </>
  );
}

function Status({ target, onTried }: { target: Target; onTried: () => void }) {
  const [busy, setBusy] = useState(false);
  const { status } = target;
  const test = async () => {
    setBusy(true);
    try {
      const { delivered, detail } = await call("POST /webhook/test");
      notify(delivered ? `Delivered: ${detail}` : `Not delivered: ${detail}`, delivered ? "good" : "bad");
    } catch (error) {
      notify(asProblem(error).message, "bad");
    }
    setBusy(false);
    onTried();
  };
  return (
    <>
      <Facts of={[
        ["Last delivery", <Time at={status.delivered} />],
        ["Last failure", <>{<Time at={status.failed} />}{status.failure && <>: <span class="wrap">{status.failure}</span></>}</>],
        ["Messages delivered", status.deliveries],
        ["Failed attempts", status.failures],
        ["Alerts waiting", status.waiting],
        ["Alerts dropped", status.dropped],
      ]} />
      <div class="actions"><button type="button" class="button" disabled={busy} onClick={() => void test()}>{busy ? "Sending…" : "Send test"}</button></div>
    </>
  );
}
