// SPDX-License-Identifier: Apache-2.0
import { useRef } from "preact/hooks";
import { call } from "../../api/call";
import { everyPage } from "../../api/every_page";
import { SampleSeries } from "../../api/samples";
import { usePoll } from "../../api/use_poll";
import { Loaded } from "../../parts/loaded";
import { PageHead } from "../../parts/page_head";
import { Panel } from "../../parts/panel";
import { Capacity } from "./capacity";
import { Charts } from "./charts";
import { FiringAlerts } from "./firing_alerts";
import { HealthChecks } from "./health_checks";
import { Numbers } from "./numbers";
import { Top } from "./top";
import { Uncounted } from "./uncounted";

const SAMPLE_MS = 1000;
const SLOW_MS = 3000;
const CAPACITY_MS = 30_000;

// Everything at a glance: what moves, how fast, whether it is safe, whether it is well.
export function Overview() {
  const series = useRef(new SampleSeries());
  const samples = usePoll("samples", (signal) => series.current.update(signal), SAMPLE_MS);
  const bricks = usePoll("bricks", (signal) => everyPage("GET /bricks", { signal }), SLOW_MS);
  const capacity = usePoll("capacity", (signal) => call("GET /capacity", { signal }), CAPACITY_MS);
  const top = usePoll("top", (signal) => call("GET /top", { signal }), SLOW_MS);
  const health = usePoll("health", (signal) => call("GET /health", { signal }), SLOW_MS);
  return (
    <>
      <PageHead title="Overview" lead="Blue: read. Amber: written. Solid: directly to memory. Dashed: through the server." />
      <FiringAlerts />
      <Loaded from={samples}>{(all) => <><Numbers newest={all.at(-1)} /><Charts samples={all} /></>}</Loaded>
      <Loaded from={bricks}>{(listing) => <Uncounted bricks={listing.items} />}</Loaded>
      <Loaded from={top}>{(value) => <Top top={value} />}</Loaded>
      <div class="columns">
        <Panel title="Capacity and durability">
          <Loaded from={bricks}>{(listing) => <Capacity bricks={listing.items} forecast={capacity.value?.text} />}</Loaded>
        </Panel>
        <Panel title="Health">
          <Loaded from={health}>{(value) => <HealthChecks health={value} />}</Loaded>
        </Panel>
      </div>
    </>
  );
}
