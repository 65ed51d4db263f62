// SPDX-License-Identifier: Apache-2.0
import { call } from "../../api/call";
import { usePoll } from "../../api/use_poll";
import { Loaded } from "../../parts/loaded";
import { PageHead } from "../../parts/page_head";
import { SelectField } from "../../parts/select_field";
import { go, useRoute } from "../../route";
import { operationsOf } from "./api_operations";
import { TryOperation } from "./try_operation";

// Every operation of the REST API, to be read and tried; made from the description that the server serves.
export function TryApi() {
  const document = usePoll("openapi", (signal) => call("GET /openapi.json", { signal }), 0);
  const wanted = useRoute().query.get("operation");
  return (
    <>
      <PageHead title="REST API" lead="Programs can do everything this console can. Try every operation here.">
        <a class="button" href="/api/v1/">Reference</a>
      </PageHead>
      <Loaded from={document}>
        {(value) => {
          const operations = operationsOf(value);
          const chosen = operations.find(({ id }) => id === wanted) ?? operations.find(({ id }) => id === "getHealth") ?? operations[0];
          if (!chosen) return null;
          return (
            <>
              <SelectField label="Operation" value={chosen.id} onValue={(id) => go(`/api-operations?operation=${id}`, "replace")}
                options={operations.map((each) => ({ value: each.id, label: `${each.method} ${each.path}` }))} />
              <TryOperation key={chosen.id} operation={chosen} />
            </>
          );
        }}
      </Loaded>
    </>
  );
}
