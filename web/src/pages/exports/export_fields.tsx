// SPDX-License-Identifier: Apache-2.0
import type { Problem } from "../../api/problem";
import { CheckField } from "../../parts/check_field";
import { Field } from "../../parts/field";
import { TextField } from "../../parts/text_field";
import { idFault, pathFault, type ExportRules } from "./export_rules";

interface Props {
  rules: ExportRules;
  onRules: (rules: ExportRules) => void;
  problem: Problem | undefined;
  // The path of an export stays what it is.
  pathFixed?: boolean;
}

export function ExportFields({ rules, onRules, problem, pathFixed }: Props) {
  const set = (change: Partial<ExportRules>) => onRules({ ...rules, ...change });
  return (
    <>
      <TextField label="Path" value={rules.path} onValue={(path) => set({ path })}
        hint={pathFixed ? "The path of an export cannot be changed; create another export instead." : "From the root of the server: / or /projects/one. The directory can be created later."}
        error={problem?.errorOf("path") ?? (rules.path ? pathFault(rules.path) : undefined)}
        input={{ readOnly: pathFixed, autocomplete: "off", autoFocus: !pathFixed }} />
      <Field label="Client networks" error={problem?.errorOf("clients")}
        hint="One per line, as in exports(5): 192.0.2.0/24, 2001:db8::/32, 127.0.0.1. Empty: everybody.">
        {(ties) => <textarea {...ties} rows={3} spellcheck={false} value={rules.clients} onInput={(event) => set({ clients: event.currentTarget.value })} />}
      </Field>
      <CheckField label="Read only" checked={rules.read_only} onValue={(read_only) => set({ read_only })}
        hint="No client gets a writable handle." />
      <CheckField label="root squash" checked={rules.root_squash} onValue={(root_squash) => set({ root_squash })}
        hint="Maps root of a client to the anonymous user." />
      <CheckField label="all squash" checked={rules.all_squash} onValue={(all_squash) => set({ all_squash })}
        hint="Maps every user to the anonymous user." />
      <CheckField label="insecure" checked={rules.insecure} onValue={(insecure) => set({ insecure })}
        hint="Accepts requests from any port of a client, not only from ports below 1024. Needed for mounts by users, rootless containers and NAT. Any user of a client can then claim to be another user, unless all squash is set." />
      <CheckField label="manage gids" checked={rules.manage_gids} onValue={(manage_gids) => set({ manage_gids })}
        hint="Looks up a user's groups on the server. Otherwise the groups in the request count, at most 16." />
      <div class="field-row">
        <TextField label="Anonymous user" value={rules.anonuid} onValue={(anonuid) => set({ anonuid })}
          error={problem?.errorOf("anonuid") ?? idFault(rules.anonuid)} input={{ inputMode: "numeric" }} />
        <TextField label="Anonymous group" value={rules.anongid} onValue={(anongid) => set({ anongid })}
          error={problem?.errorOf("anongid") ?? idFault(rules.anongid)} input={{ inputMode: "numeric" }} />
      </div>
    </>
  );
}
