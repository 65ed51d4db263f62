// SPDX-License-Identifier: Apache-2.0
import type { Brick } from "../../api/generated";
import { bytesText, percent, plural } from "../../format/number";
import { Badge } from "../../parts/badge";
import { Empty } from "../../parts/empty";
import { Link } from "../../parts/link";
import { Meter } from "../../parts/meter";
import { BETWEEN_MEANING, betweenBytes, brickName, durabilityMeaning, FILES_MEANING, freeBytes, stateTone } from "../devices/brick_words";

// How full, and what a written byte survives: of all devices, then of each.
export function Capacity({ bricks, forecast }: { bricks: Brick[]; forecast: string | undefined }) {
  if (bricks.length === 0) {
    return <Empty title="No device yet."><Link href="/devices" class="button">Add a device</Link></Empty>;
  }
  const sum = (of: (brick: Brick) => number) => bricks.reduce((total, brick) => total + of(brick), 0);
  const capacity = sum((brick) => brick.capacity_bytes);
  const used = sum((brick) => brick.used_bytes);
  return (
    <>
      <p class="capacity-total">
        <strong>{bytesText(used)}</strong> of {bytesText(capacity)} used by files <span class="muted">({percent(used, capacity)})</span>
      </p>
      {forecast && <p class="forecast">{forecast}</p>}
      <p class="muted">As <code>df</code> shows it; {FILES_MEANING}.</p>
      <ul class="capacity-list">
        {bricks.map((brick) => (
          <li key={brick.id}>
            <div class="capacity-line">
              <Link href="/devices">{brickName(brick)}</Link>
              <span>
                <Badge tone={stateTone(brick.state)}>{brick.state}</Badge>{" "}
                <Badge tone={brick.durability === "power" ? "good" : "warn"} title={durabilityMeaning(brick.durability)}>{brick.durability}</Badge>
              </span>
            </div>
            <Meter label="Space" whole={brick.capacity_bytes} parts={[
              { label: "files", value: brick.used_bytes, tone: "data" },
              { label: "free in blocks in use", value: betweenBytes(brick), tone: "held" },
            ]} />
            <p class="muted">{bytesText(freeBytes(brick))} free <span title={BETWEEN_MEANING}>({bytesText(betweenBytes(brick))} in blocks in use)</span>, {plural(brick.grants, "live handle")}, survives {durabilityMeaning(brick.durability)}</p>
          </li>
        ))}
      </ul>
    </>
  );
}
