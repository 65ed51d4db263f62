// SPDX-License-Identifier: Apache-2.0
import { Segments } from "../parts/segments";
import { go, hrefWith } from "../route";

interface Props<T extends string> {
  ranges: readonly { value: T; label: string }[];
  value: T;
}

// How far back the charts of the page go; part of its address.
export function RangeSwitch<T extends string>({ ranges, value }: Props<T>) {
  return (
    <div class="chart-tools">
      <span class="muted" aria-hidden="true">Last</span>
      <Segments label="Time range: last" options={ranges} value={value} onValue={(range) => go(hrefWith({ range }), "replace")} />
    </div>
  );
}
