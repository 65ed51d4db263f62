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
        hint={pathFixed ? "An export keeps its path; make another for another one." : "From the root of the server: / or /projects/one. It may be made later."}
        error={problem?.errorOf("path") ?? (rules.path ? pathFault(rules.path) : undefined)}
        input={{ readOnly: pathFixed, autocomplete: "off", autoFocus: !pathFixed }} />
      <Field label="Client networks" error={problem?.errorOf("clients")}
        hint="One a line, as in exports(5): 192.0.2.0/24, 2001:db8::/32, 127.0.0.1. None: everybody.">
        {(ties) => <textarea {...ties} rows={3} spellcheck={false} value={rules.clients} onInput={(event) => set({ clients: event.currentTarget.value })} />}
      </Field>
      <CheckField label="Read only" checked={rules.read_only} onValue={(read_only) => set({ read_only })}
        hint="Nobody gets a handle to write with." />
      <CheckField label="root squash" checked={rules.root_squash} onValue={(root_squash) => set({ root_squash })}
        hint="root of a client is the anonymous user here." />
      <CheckField label="all squash" checked={rules.all_squash} onValue={(all_squash) => set({ all_squash })}
        hint="Everybody is the anonymous user." />
      <CheckField label="insecure" checked={rules.insecure} onValue={(insecure) => set({ insecure })}
        hint="Serves requests from every port of a client, not only from those below 1024 that root has. Mounts by users, rootless containers and NAT need it: any user of a client can then say he is another, unless all squash is set." />
      <CheckField label="manage gids" checked={rules.manage_gids} onValue={(manage_gids) => set({ manage_gids })}
        hint="The server's host says what groups a user is in. Otherwise his calls do, which have room for 16." />
      <div class="field-row">
        <TextField label="Anonymous user" value={rules.anonuid} onValue={(anonuid) => set({ anonuid })}
          error={problem?.errorOf("anonuid") ?? idFault(rules.anonuid)} input={{ inputMode: "numeric" }} />
        <TextField label="Anonymous group" value={rules.anongid} onValue={(anongid) => set({ anongid })}
          error={problem?.errorOf("anongid") ?? idFault(rules.anongid)} input={{ inputMode: "numeric" }} />
      </div>
    </>
  );
}
