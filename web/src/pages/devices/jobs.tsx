// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Job } from "../../api/generated";
import { call } from "../../api/call";
import { asProblem } from "../../api/problem";
import { percent } from "../../format/number";
import { notify } from "../../notices";
import { DataList } from "../../list/data_list";
import { listOf } from "../../list/source";
import { Badge, type Tone } from "../../parts/badge";
import { Panel } from "../../parts/panel";
import { Time } from "../../parts/time";
import { useMay } from "../../session";

const JOBS_MS = 1000;
const TONES: Record<Job["state"], Tone> = { running: "warn", done: "good", failed: "bad", cancelled: "quiet" };

export function Jobs() {
  const [changes, setChanges] = useState(0);
  const may = useMay();
  const cancel = async (job: Job) => {
    try {
      await call("DELETE /jobs/{id}", { path: { id: job.id } });
      setChanges((old) => old + 1);
    } catch (error) {
      notify(asProblem(error).message, "bad");
    }
  };
  return (
    <Panel title="Jobs">
      <DataList caption="Jobs" name="jobs" from={listOf("GET /jobs", JOBS_MS)} rowKey={(job) => job.id} sort="-started" changes={changes}
        empty={<p class="muted">No jobs since the server started. Formatting or checking a device starts one.</p>} columns={[
          { title: "Job", value: (job) => `${job.kind} ${job.subject}`, cell: (job) => <>{job.kind} <code class="wrap">{job.subject}</code></> },
          { title: "State", value: (job) => job.state, cell: (job) => <Badge tone={TONES[job.state]}>{job.state}</Badge> },
          { title: "Progress", value: (job) => job.message, cell: (job) => <JobProgress job={job} /> },
          { title: "By", value: (job) => job.user, cell: (job) => job.user },
          { title: "Started", value: (job) => job.started, cell: (job) => <Time at={job.started} /> },
          { title: "Actions", quiet: true, cell: (job) => job.state === "running" && job.cancellable && may("DELETE /jobs/{id}") &&
            <button type="button" class="button" onClick={() => void cancel(job)}>Cancel</button> },
        ]} />
    </Panel>
  );
}

function JobProgress({ job }: { job: Job }) {
  return (
    <div class="progress">
      {job.state === "running" && <progress max={1} value={job.progress} aria-label={`${job.kind} of ${job.subject}`} />}
      <span>{job.state === "running" && `${percent(job.progress, 1)} `}{job.message}</span>
    </div>
  );
}
