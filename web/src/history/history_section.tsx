// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { Empty } from "../parts/empty";
import { Loaded } from "../parts/loaded";
import { SelectField } from "../parts/select_field";
import { go, hrefWith, useRoute } from "../route";
import { HistoryCharts } from "./history_charts";
import { RangeSwitch } from "./range_switch";
import { RANGES, rangeOf, type Subject } from "./ranges";
import { useHistory } from "./use_history";

interface Choice {
  id: string;
  label: string;
}

interface Props {
  of: Subject["of"];
  // "device", "export": what one of them is called.
  what: string;
  choices: Choice[];
  // What the charts cannot show of the chosen one.
  note?: (id: string) => ComponentChildren;
}

// Of several that have a history, the charts of one; which one is part of the page's address.
export function HistorySection({ of, what, choices, note }: Props) {
  const asked = useRoute().query.get("history");
  const chosen = choices.find(({ id }) => id === asked) ?? choices[0];
  const heading = useId();
  if (!chosen) return null;
  return (
    <section aria-labelledby={heading} class="history">
      <h2 id={heading}>History{choices.length === 1 && <> of <span class="wrap">{chosen.label}</span></>}</h2>
      {choices.length > 1 && (
        <SelectField label={`Show ${what}`} value={chosen.id} options={choices.map(({ id, label }) => ({ value: id, label }))}
          onValue={(id) => go(hrefWith({ history: id }), "replace")} />
      )}
      {note?.(chosen.id)}
      <HistoryOf key={chosen.id} of={of} id={chosen.id} />
    </section>
  );
}

export function HistoryOf({ of, id }: Subject) {
  const range = rangeOf(useRoute().query.get("range"));
  const history = useHistory({ of, id }, range);
  return (
    <>
      <RangeSwitch ranges={RANGES} value={range} />
      <Loaded from={history}>
        {(value) => value === null ? <Empty title="No data yet." /> : <HistoryCharts history={value} />}
      </Loaded>
    </>
  );
}
