// SPDX-License-Identifier: Apache-2.0
import type { Event as ServerEvent } from "../../api/generated";
import { absoluteText } from "../../format/time";
import { Badge, type Tone } from "../../parts/badge";
import { DataTable } from "../../parts/data_table";
import { identity } from "./event_list";

const TONES: Record<ServerEvent["level"], Tone> = { debug: "quiet", info: "quiet", warning: "warn", error: "bad" };

export function EventTable({ events }: { events: ServerEvent[] }) {
  return (
    <DataTable caption="Events, newest first" rows={events} rowKey={identity} columns={[
      { title: "Time", cell: (event) => <time class="nowrap" dateTime={event.time}>{absoluteText(event.time)}</time> },
      { title: "Level", cell: (event) => <Badge tone={TONES[event.level]}>{event.level}</Badge> },
      { title: "Component", cell: (event) => event.component },
      { title: "Event", cell: (event) => <code class="strong">{event.name}</code> },
      { title: "Details", cell: (event) => <EventFields fields={event.fields} text={event.text} /> },
    ]} />
  );
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
