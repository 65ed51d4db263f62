// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import type { ExportEffect } from "../../api/generated";
import { call } from "../../api/call";
import { plural } from "../../format/number";
import { networks, type ExportRules } from "./export_rules";

const PAUSE_MS = 300;

// What making it would cost clients that are mounted now; undefined: not known, or nothing is asked.
export function useEffectOf(rules: ExportRules | undefined): ExportEffect | undefined {
  const [effect, setEffect] = useState<ExportEffect>();
  const path = rules?.path;
  const clients = rules && networks(rules.clients).join(",");
  useEffect(() => {
    setEffect(undefined);
    if (path === undefined) return;
    const stop = new AbortController();
    // Not at each key.
    const timer = setTimeout(() => {
      call("GET /exports/effect", { query: { path, clients }, signal: stop.signal }).then(setEffect, () => undefined);
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [path, clients]);
  return effect;
}

export function MountedNow({ effect, path }: { effect: ExportEffect; path: string }) {
  const { clients, losing, inside } = effect;
  return (
    <p>
      {plural(clients, "client has", "clients have")} {inside} mounted now.{" "}
      {losing.length > 0 && <strong>{plural(losing.length, "of them loses", "of them lose")} {path}: {losing.join(", ")}.</strong>}
      {losing.length === 0 && clients > 0 && `All of them may mount ${path}.`}
    </p>
  );
}
