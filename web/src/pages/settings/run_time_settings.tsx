// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Configuration, ConfigurationPatch } from "../../api/generated";
import { call } from "../../api/call";
import { notify } from "../../notices";
import { Form } from "../../parts/form";
import { SelectField } from "../../parts/select_field";
import { TextField } from "../../parts/text_field";

const LEVELS = ["debug", "info", "warning", "error"] as const;
const FILE = "";

interface Props {
  configuration: Configuration;
  etag: string;
  onChanged: () => void;
}

// "" in either field gives the setting back to the configuration file.
export function RunTimeSettings({ configuration, etag, onChanged }: Props) {
  const { log_level, small_file_bytes } = configuration.settings;
  const level0 = log_level?.source === "store" ? String(log_level.value) : FILE;
  const small0 = small_file_bytes?.source === "store" ? String(small_file_bytes.value) : FILE;
  const [level, setLevel] = useState(level0);
  const [small, setSmall] = useState(small0);
  const smallFault = small === "" || /^\d{1,10}$/.test(small) ? undefined : "Enter a number of bytes.";
  const save = async () => {
    const body: ConfigurationPatch = {};
    if (level !== level0) body.log_level = level === FILE ? null : level as ConfigurationPatch["log_level"];
    if (small !== small0) body.small_file_bytes = small === FILE ? null : Number(small);
    await call("PATCH /configuration", { body, ifMatch: etag });
    notify("Changed. The change survives a restart.");
    onChanged();
  };
  const now = (value: unknown) => `Now ${JSON.stringify(value)}.`;
  return (
    <Form submit="Change" disabled={smallFault !== undefined || (level === level0 && small === small0)} onSubmit={save}>
      {(problem) => (
        <>
          <SelectField label="Log level" value={level} onValue={setLevel} hint={now(log_level?.value)}
            options={[{ value: FILE, label: "as in the configuration file" }, ...LEVELS.map((each) => ({ value: each, label: each }))]} />
          <TextField label="Small files (bytes)" value={small} onValue={setSmall} error={problem?.errorOf("small_file_bytes") ?? smallFault}
            hint={`${now(small_file_bytes?.value)} Files up to this size are read and written through the server. Empty: as in the configuration file.`}
            input={{ inputMode: "numeric" }} />
        </>
      )}
    </Form>
  );
}
