// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { Badge, type Tone } from "../../parts/badge";
import { Empty } from "../../parts/empty";
import { PageHead } from "../../parts/page_head";
import { Panel } from "../../parts/panel";
import { ProblemNote } from "../../parts/problem_note";
import { go, hrefWith, useRoute } from "../../route";
import { EventFilters, LEVELS } from "./event_filters";
import { EventTable } from "./event_table";
import { useEvents, type EventFilter, type LiveEvents } from "./use_events";

const STATES: Record<LiveEvents["state"], { tone: Tone; text: string }> = {
  opening: { tone: "quiet", text: "opening" },
  live: { tone: "good", text: "live" },
  away: { tone: "bad", text: "disconnected, retrying" },
  paused: { tone: "warn", text: "paused" },
};

export function Events() {
  const filter = filterOf(useRoute().query);
  const setFilter = ({ level, component, name }: EventFilter) =>
    go(hrefWith({ level: level === "info" ? null : level, component, name, page: null }), "replace");
  const [paused, setPaused] = useState(false);
  const { events, state, problem } = useEvents(filter, paused);
  const shown = STATES[state];
  return (
    <>
      <PageHead title="Events" lead="Live events of the server, the same lines as in its log.">
        <span role="status"><Badge tone={shown.tone}>{shown.text}</Badge></span>
        <button type="button" class="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>{paused ? "Resume" : "Pause"}</button>
      </PageHead>
      <Panel title="Events of this server">
        <EventFilters filter={filter} seen={events} onFilter={setFilter} />
        <ProblemNote problem={problem} />
        <EventTable events={events} empty={!problem && state !== "opening" &&
          <Empty title="No matching events."><p>Choose a lower level, or clear component and name.</p></Empty>} />
      </Panel>
    </>
  );
}

function filterOf(query: URLSearchParams): EventFilter {
  const level = LEVELS.find(({ value }) => value === query.get("level"))?.value ?? "info";
  return { level, component: query.get("component") ?? "", name: query.get("name") ?? "" };
}
