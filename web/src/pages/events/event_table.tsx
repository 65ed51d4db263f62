// SPDX-License-Identifier: Apache-2.0
import type { Event as ServerEvent } from "../../api/generated";
import { absoluteText } from "../../format/time";
import type { ComponentChildren } from "preact";
import { DataList } from "../../list/data_list";
import { rowsOf } from "../../list/source";
import { Badge, type Tone } from "../../parts/badge";
import { identity } from "./event_list";
import { EVENT_MEANINGS } from "./generated";

const TONES: Record<ServerEvent["level"], Tone> = { debug: "quiet", info: "quiet", warning: "warn", error: "bad" };

export function EventTable({ events, empty }: { events: ServerEvent[]; empty: ComponentChildren }) {
  return (
    <DataList caption="Events" from={rowsOf("events", events)} rowKey={identity} sort="-time" empty={empty} columns={[
      { title: "Time", value: (event) => event.time, cell: (event) => <time class="nowrap" dateTime={event.time}>{absoluteText(event.time)}</time> },
      { title: "Level", value: (event) => event.level, cell: (event) => <Badge tone={TONES[event.level]}>{event.level}</Badge> },
      { title: "Component", value: (event) => event.component, cell: (event) => event.component },
      { title: "Event", value: (event) => event.name, cell: (event) => <EventName name={event.name} /> },
      { title: "Details", value: fieldsText, cell: (event) => <EventFields fields={event.fields} text={event.text} /> },
    ]} />
  );
}

// What it means, and what to do about it: as docs/events.md has it.
function EventName({ name }: { name: string }) {
  const known = EVENT_MEANINGS[name];
  return (
    <>
      <code class="strong">{name}</code>
      {known && <p class="hint">{known.meaning} {known.remedy && <>What to do: {known.remedy}</>}</p>}
    </>
  );
}

function fieldsText({ fields, text }: ServerEvent): string {
  return Object.entries(fields).map(([key, value]) => `${key}=${value}`).join(" ") || text;
}

function EventFields({ fields, text }: { fields: Record<string, string>; text: string }) {
  const entries = Object.entries(fields);
  if (entries.length === 0) return <span class="muted wrap">{text}</span>;
  return (
    <span class="event-fields">
      {entries.map(([key, value]) => <span key={key}><span class="muted">{key}=</span><code class="wrap">{value}</code> </span>)}
    </span>
  );
}
