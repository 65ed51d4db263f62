// SPDX-License-Identifier: Apache-2.0
import type { Job } from "../../api/generated";
import { call } from "../../api/call";
import { everyPage } from "../../api/every_page";
import { asProblem } from "../../api/problem";
import { usePoll } from "../../api/use_poll";
import { percent } from "../../format/number";
import { notify } from "../../notices";
import { Badge, type Tone } from "../../parts/badge";
import { DataTable } from "../../parts/data_table";
import { Loaded } from "../../parts/loaded";
import { Panel } from "../../parts/panel";
import { Time } from "../../parts/time";
import { useMay } from "../../session";

const JOBS_MS = 1000;
const TONES: Record<Job["state"], Tone> = { running: "warn", done: "good", failed: "bad", cancelled: "quiet" };

export function Jobs() {
  const jobs = usePoll("jobs", (signal) => everyPage("GET /jobs", { signal }), JOBS_MS);
  const may = useMay();
  const cancel = async (job: Job) => {
    try {
      await call("DELETE /jobs/{id}", { path: { id: job.id } });
      jobs.refresh();
    } catch (error) {
      notify(asProblem(error).message, "bad");
    }
  };
  return (
    <Panel title="Jobs">
      <Loaded from={jobs}>
        {({ items }) => items.length === 0
          ? <p class="muted">None since the server started. Formatting or checking a device makes one.</p>
          : (
            <DataTable caption="Jobs, newest first" rows={items} rowKey={(job) => job.id} columns={[
              { title: "Job", cell: (job) => <>{job.kind} <code class="wrap">{job.subject}</code></> },
              { title: "State", cell: (job) => <Badge tone={TONES[job.state]}>{job.state}</Badge> },
              { title: "Progress", cell: (job) => <JobProgress job={job} /> },
              { title: "By", cell: (job) => job.user },
              { title: "Started", cell: (job) => <Time at={job.started} /> },
              { title: "Actions", quiet: true, cell: (job) => job.state === "running" && job.cancellable && may("DELETE /jobs/{id}") &&
                <button type="button" class="button" onClick={() => void cancel(job)}>Cancel</button> },
            ]} />
          )}
      </Loaded>
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
