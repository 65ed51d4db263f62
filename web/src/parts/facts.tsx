// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";

// Names and values, in a column each.
export function Facts({ of }: { of: [name: string, value: ComponentChildren][] }) {
  return (
    <dl class="facts">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
