// SPDX-License-Identifier: Apache-2.0
import { absoluteText, agoText, inText } from "../format/time";
import { useNow } from "./use_now";

// How long ago (or in how long), with the absolute time in UTC one hover away and for machines.
export function Time({ at, absolute = false }: { at: string | null; absolute?: boolean }) {
  const now = useNow();
  if (at === null) return <span class="muted">never</span>;
  const difference = now - Date.parse(at);
  const relative = difference < -5000 ? inText(-difference) : agoText(difference);
  const text = absoluteText(at);
  return (
    <time dateTime={at} title={absolute ? relative : text}>
      {absolute ? text : relative}
    </time>
  );
}
