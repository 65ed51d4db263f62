// SPDX-License-Identifier: Apache-2.0
import type { Configuration } from "../../api/generated";
import { call, callFor } from "../../api/call";
import { usePoll } from "../../api/use_poll";
import { Badge } from "../../parts/badge";
import { DataTable } from "../../parts/data_table";
import { Facts } from "../../parts/facts";
import { Loaded } from "../../parts/loaded";
import { Panel } from "../../parts/panel";
import { useMay } from "../../session";
import { RunTimeSettings } from "./run_time_settings";

const SOURCES = { default: "default", file: "configuration file", store: "this console" };

// What is in force, where it comes from, and what can change while the server runs.
export function Server() {
  const configuration = usePoll("configuration", (signal) => callFor("GET /configuration", { signal }), 0);
  const version = usePoll("version", (signal) => call("GET /version", { signal }), 0);
  const may = useMay();
  return (
    <>
      <div class="columns">
        <Panel title="Version">
          <Loaded from={version}>
            {(value) => <Facts of={[
              ["Version", `${value.product} ${value.version}`],
              ["NFS", value.protocols.join(", ")],
              ["API", <a href="/api/v1/">{value.api} reference</a>],
            ]} />}
          </Loaded>
        </Panel>
        {may("PATCH /configuration") && (
          <Panel title="Change at run time">
            <Loaded from={configuration}>
              {({ value, etag }) => <RunTimeSettings key={etag} configuration={value} etag={etag ?? ""} onChanged={configuration.refresh} />}
            </Loaded>
          </Panel>
        )}
      </div>
      <Panel title="In force">
        <Loaded from={configuration}>{({ value }) => <SettingsTable configuration={value} />}</Loaded>
      </Panel>
    </>
  );
}

function SettingsTable({ configuration }: { configuration: Configuration }) {
  const rows = Object.entries(configuration.settings).map(([name, setting]) => ({ name, ...setting }));
  return (
    <>
      <p class="muted">From <code class="wrap">{configuration.configuration_file}</code>; everything else has its default value.</p>
      <DataTable caption="Settings" rows={rows} rowKey={(row) => row.name} columns={[
        { title: "Setting", cell: (row) => <code class="strong">{row.name}</code> },
        { title: "Value", cell: (row) => <code class="wrap">{JSON.stringify(row.value)}</code> },
        { title: "From", cell: (row) => SOURCES[row.source] },
        { title: "Change", cell: (row) => row.run_time ? <Badge tone="good">at run time</Badge> : <span class="muted">in the file, then restart</span> },
      ]} />
    </>
  );
}
