// SPDX-License-Identifier: Apache-2.0
import { useEffect, useId, useState } from "preact/hooks";
import type { Event as ServerEvent } from "../../api/generated";
import { SelectField } from "../../parts/select_field";
import { TextField } from "../../parts/text_field";
import type { EventFilter, Level } from "./use_events";

export const LEVELS: { value: Level; label: string }[] = [
  { value: "debug", label: "all levels" },
  { value: "info", label: "info and above" },
  { value: "warning", label: "warnings and errors" },
  { value: "error", label: "errors only" },
];
const TYPING_MS = 400;

interface Props {
  filter: EventFilter;
  // For the suggestions.
  seen: ServerEvent[];
  onFilter: (filter: EventFilter) => void;
}

export function EventFilters({ filter, seen, onFilter }: Props) {
  const [component, setComponent] = useState(filter.component);
  const [name, setName] = useState(filter.name);
  const id = useId();

  // Asks the server when the typing rests, not at each letter.
  useEffect(() => {
    const timer = window.setTimeout(() => {
      if (component !== filter.component || name !== filter.name) onFilter({ ...filter, component, name });
    }, TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [component, name]);

  const known = (of: (event: ServerEvent) => string) => [...new Set(seen.map(of))].sort();
  return (
    <div class="filters">
      <SelectField label="Level" value={filter.level} options={LEVELS} onValue={(level) => onFilter({ ...filter, level })} />
      <TextField label="Component" value={component} onValue={setComponent} input={{ list: `${id}-components`, placeholder: "any" }} />
      <TextField label="Name" value={name} onValue={setName} input={{ list: `${id}-names`, placeholder: "any" }} />
      <datalist id={`${id}-components`}>{known((event) => event.component).map((value) => <option key={value} value={value} />)}</datalist>
      <datalist id={`${id}-names`}>{known((event) => event.name).map((value) => <option key={value} value={value} />)}</datalist>
    </div>
  );
}
