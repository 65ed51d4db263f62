// SPDX-License-Identifier: Apache-2.0
import type { Brick } from "../../api/generated";
import { call, callFor } from "../../api/call";
import { asProblem } from "../../api/problem";
import { bytesText, countText } from "../../format/number";
import { notify } from "../../notices";
import { Badge } from "../../parts/badge";
import { Facts } from "../../parts/facts";
import { Link } from "../../parts/link";
import { Meter } from "../../parts/meter";
import { Panel } from "../../parts/panel";
import { Time } from "../../parts/time";
import { useMay } from "../../session";
import { BETWEEN_MEANING, betweenBytes, brickName, controlText, controlTone, durabilityMeaning, FILES_MEANING, freeBytes, kindName, stateTone, transportName } from "./brick_words";

interface Props {
  brick: Brick;
  onFormat: () => void;
  onName: () => void;
  onRemove: () => void;
}

// One brick: what it is, how full, how it is reached, what can be done with it.
export function BrickPanel({ brick, onFormat, onName, onRemove }: Props) {
  const { counters } = brick;
  return (
    <Panel title={brickName(brick)} aside={<><Badge tone={stateTone(brick.state)}>{brick.state}</Badge> <span class="muted">since <Time at={brick.since} /></span></>}>
      {brick.detail && <p class={`note ${stateTone(brick.state) === "bad" ? "note-bad" : ""}`}>{brick.detail}</p>}
      <Meter label="Space" whole={brick.capacity_bytes} parts={[
        { label: "files", value: brick.used_bytes, tone: "data" },
        { label: "free in blocks in use", value: betweenBytes(brick), tone: "held" },
      ]} />
      <Facts of={[
        ["Used by files", <>{bytesText(brick.used_bytes)} <span class="muted">({FILES_MEANING})</span></>],
        ["Free", <>{bytesText(freeBytes(brick))} of {bytesText(brick.capacity_bytes)}, as <code>df</code> shows it</>],
        ["In blocks in use", <>{bytesText(betweenBytes(brick))} <span class="muted">({BETWEEN_MEANING})</span></>],
        ["Medium", kindName(brick.kind)],
        ["Durability", <><Badge tone={brick.durability === "power" ? "good" : "warn"}>{brick.durability}</Badge> <span class="muted">survives {durabilityMeaning(brick.durability)}</span></>],
        ["Flush", brick.flush_methods.join(", ") || "–"],
        ["Reached by", brick.paths.length
          ? <ul class="plain">{brick.paths.map((path) => <li key={path.netid + path.endpoint}><code>{path.endpoint}</code> <span class="muted">{transportName(path.netid)}</span></li>)}</ul>
          : "–"],
        ["Clients connected", Object.entries(brick.connections).map(([transport, count]) => `${countText(count)} by ${transport}`).join(", ") || "none"],
        ["Clients that do not reach it", brick.unreached_by.join(", ") || "none"],
        ["Live handles", <>{countText(brick.grants)}{brick.grants_max > 0 && <span class="muted"> of at most {countText(brick.grants_max)} per client</span>}</>],
        ["Read by iWARP", <>{bytesText(counters.rdma_read_bytes)} <span class="muted">in {countText(counters.rdma_reads)}</span></>],
        ["Written by iWARP", <>{bytesText(counters.rdma_write_bytes)} <span class="muted">in {countText(counters.rdma_writes)}</span></>],
        ["Flushes", <>{countText(counters.rdma_flushes)} native, {countText(counters.commit_messages)} by message, {countText(counters.mds_flushes)} by the server</>],
        ["Control address", <code class="wrap">{brick.address}</code>],
        ["Control", <Badge tone={controlTone(brick)}>{controlText(brick)}</Badge>],
        ["Id", <code class="wrap">{brick.id}</code>],
      ]} />
      <Actions brick={brick} onFormat={onFormat} onName={onName} onRemove={onRemove} />
    </Panel>
  );
}

function Actions({ brick, onFormat, onName, onRemove }: Props) {
  const may = useMay();
  const check = async () => {
    try {
      await call("POST /bricks/{brick}/check", { path: { brick: brick.id } });
      notify(`Checking ${brickName(brick)}: see the jobs below.`);
    } catch (error) {
      notify(asProblem(error).message, "bad");
    }
  };
  const draining = brick.state === "draining";
  const drain = async () => {
    try {
      const path = { brick: brick.id };
      const { etag } = await callFor("GET /bricks/{brick}", { path });
      await call("PATCH /bricks/{brick}", { path, body: { draining: !draining }, ifMatch: etag ?? "" });
      notify(draining ? `${brickName(brick)} accepts new files again.` : `${brickName(brick)} gets no new files.`);
    } catch (error) {
      notify(asProblem(error).message, "bad");
    }
  };
  return (
    <div class="actions actions-end">
      <Link class="button" href={`/exposure?brick=${brick.id}`}>Show its memory</Link>
      {may("POST /bricks/{brick}/check") && <button type="button" class="button" onClick={() => void check()}>Check</button>}
      {may("PATCH /bricks/{brick}") && (brick.state === "ready" || draining) && (
        <button type="button" class="button" aria-pressed={draining} title="A draining device gets no new files"
          onClick={() => void drain()}>{draining ? "Use again" : "Drain"}</button>
      )}
      {may("PATCH /bricks/{brick}") && <button type="button" class="button" onClick={onName}>Rename…</button>}
      {may("POST /bricks/{brick}/format") &&
        <RefusableButton refusal={brick.format_refusal} onClick={onFormat}>Format…</RefusableButton>}
      {may("DELETE /bricks/{brick}") &&
        <RefusableButton refusal={brick.remove_refusal} onClick={onRemove}>Remove…</RefusableButton>}
      <Refusals brick={brick} />
    </div>
  );
}

// Stays in the order of Tab, so that its reason can be read by everybody.
function RefusableButton({ refusal, onClick, children }: { refusal: string | null; onClick: () => void; children: string }) {
  return (
    <button type="button" class="button" aria-disabled={refusal !== null} title={refusal ?? undefined}
      onClick={() => { if (refusal === null) onClick(); }}>{children}</button>
  );
}

function Refusals({ brick }: { brick: Brick }) {
  const reasons = [...new Set([brick.format_refusal, brick.remove_refusal])].filter((reason) => reason !== null);
  if (reasons.length === 0) return null;
  const what = brick.remove_refusal === null ? "Cannot be formatted now." : "Cannot be formatted or removed now.";
  return <p class="hint refusal">{what} {reasons.join(" ")}</p>;
}
