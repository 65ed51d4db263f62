// SPDX-License-Identifier: Apache-2.0
import type { Cluster as ClusterState } from "../../api/generated";
import { call } from "../../api/call";
import { usePoll } from "../../api/use_poll";
import { bytesText, countText } from "../../format/number";
import { Badge } from "../../parts/badge";
import { DataTable } from "../../parts/data_table";
import { Empty } from "../../parts/empty";
import { Facts } from "../../parts/facts";
import { Loaded } from "../../parts/loaded";
import { Meter } from "../../parts/meter";
import { PageHead } from "../../parts/page_head";
import { Panel } from "../../parts/panel";
import { costFacts, databaseText, leaderText, logText, memberRole, MEMBER_TONES, SERVER_TONES, takeoversText, takeoverText } from "./cluster_words";

const CLUSTER_MS = 2000;

// The metadata servers that share a log in etcd: who leads, who follows, and what is wrong.
export function Cluster() {
  const cluster = usePoll("cluster", (signal) => call("GET /cluster", { signal }), CLUSTER_MS);
  return (
    <>
      <PageHead title="Cluster" lead="The metadata servers that share a log in etcd." />
      <Loaded from={cluster}>
        {(now) => now.configured ? <Shared cluster={now} /> : (
          <Panel title="Not a cluster"><Empty title="The metadata are on this host only: metadata_log is not set." /></Panel>
        )}
      </Loaded>
    </>
  );
}

function Shared({ cluster }: { cluster: ClusterState }) {
  return (
    <>
      <Panel title="Take-over">
        <p><Badge tone={cluster.takeover_possible ? "good" : "warn"}>{cluster.takeover_possible ? "possible" : "not possible"}</Badge> {takeoverText(cluster)}</p>
        {cluster.log !== "" && (
          <>
            <Meter label="Window" whole={cluster.window_bytes_max} parts={[{ label: "not trimmed", value: cluster.window_bytes, tone: "data" }]} />
            <p class="muted">{bytesText(cluster.window_bytes)} of {bytesText(cluster.window_bytes_max)} of the log that some server may still need.</p>
          </>
        )}
        <Facts of={[
          ["Leader", leaderText(cluster)],
          ["Log", logText(cluster)],
          ["Take-overs", takeoversText(cluster)],
          ...costFacts(cluster.costs),
        ]} />
      </Panel>
      {cluster.problems.length > 0 && (
        <Panel title="Problems">
          <ul class="checks">
            {cluster.problems.map((problem) => (
              <li key={problem.detail}>
                <Badge tone="warn">problem</Badge>
                <div><span class="wrap">{problem.detail}</span><p class="fix">{problem.fix}</p></div>
              </li>
            ))}
          </ul>
        </Panel>
      )}
      <Panel title="Metadata servers">
        {cluster.servers.length === 0 ? <Empty title="Not known while etcd does not answer." /> : <DataTable caption="Metadata servers" rows={cluster.servers} rowKey={(server) => server.name} columns={[
          { title: "Server", cell: (server) => <strong class="wrap">{server.name}</strong> },
          { title: "State", cell: (server) => <Badge tone={SERVER_TONES[server.state]}>{server.state}</Badge> },
          { title: "Has the log to", numeric: true, cell: (server) => countText(server.position) },
          { title: "Behind", numeric: true, cell: (server) => countText(server.behind) },
        ]} />}
      </Panel>
      <Panel title="Members of etcd">
        <DataTable caption="Members of etcd" rows={cluster.members} rowKey={(member) => member.id} columns={[
          { title: "Member", cell: (member) => <strong class="wrap">{member.name || member.id}</strong> },
          { title: "State", cell: (member) => <Badge tone={MEMBER_TONES[member.state]}>{member.state}</Badge> },
          { title: "Role", cell: (member) => memberRole(member, cluster) || <span class="muted">not known</span> },
          { title: "Leads etcd", cell: (member) => member.leads ? "yes" : "no" },
          { title: "Version", cell: (member) => member.version || <span class="muted">not known</span> },
          { title: "Database", numeric: true, cell: databaseText },
          { title: "Address", cell: (member) => <code class="wrap">{member.address}</code> },
        ]} />
      </Panel>
    </>
  );
}
