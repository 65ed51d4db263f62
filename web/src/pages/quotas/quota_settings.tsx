// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { QuotaSettings, QuotaSettingsPatch } from "../../api/generated";
import { call, callFor } from "../../api/call";
import { percent } from "../../format/number";
import { durationText } from "../../format/time";
import { notify } from "../../notices";
import { Badge } from "../../parts/badge";
import { Dialog } from "../../parts/dialog";
import { Facts } from "../../parts/facts";
import { Form } from "../../parts/form";
import { TextField } from "../../parts/text_field";
import { LimitFields } from "./limit_fields";
import { anyFault, changesOf, graceOf, graceText, limitsText, textsOf } from "./quota_words";

async function change(body: QuotaSettingsPatch): Promise<void> {
  const { etag } = await callFor("GET /quota-settings");
  await call("PATCH /quota-settings", { body, ifMatch: etag ?? "" });
}

// Whether quotas are on, how far the counting is, the grace periods, and everybody's limits.
export function SettingFacts({ settings }: { settings: QuotaSettings }) {
  return (
    <Facts of={[
      ["Quotas", <CountingState settings={settings} />],
      ["Grace period of space", durationText(settings.space_grace_seconds)],
      ["Grace period of inodes", durationText(settings.inode_grace_seconds)],
      ["Each user without own limits", limitsText(settings.user_default)],
      ["Each group without own limits", limitsText(settings.group_default)],
    ]} />
  );
}

function CountingState({ settings }: { settings: QuotaSettings }) {
  if (settings.state === "on") return <Badge tone="good">on</Badge>;
  if (settings.state === "off") return <Badge title="Nothing is counted, and nothing limited">off</Badge>;
  const share = settings.counted_share ?? 0;
  return (
    <div class="progress">
      <progress max={1} value={share} aria-label="Counting" />
      <span>counting, {percent(share, 1)}: limits do not hold yet</span>
    </div>
  );
}

export function SwitchOn({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Switch quotas on" onClose={onClose}>
      <Form submit="Switch on" onCancel={onClose} onSubmit={async () => {
        await change({ on: true });
        notify("Quotas are on. What is there is being counted.");
        onClose();
      }}>
        {() => <p>What is there is counted in the background, and from then on each change. Without limits nothing is refused. Quotas cannot be
          switched off again.</p>}
      </Form>
    </Dialog>
  );
}

const DEFAULTS = {
  user: { setting: "user_default", of: "Each user" },
  group: { setting: "group_default", of: "Each group" },
} as const;

// Everybody's limits: of each user, or group, that has none of its own.
export function EditDefaults({ kind, settings, onClose }: { kind: "user" | "group"; settings: QuotaSettings; onClose: () => void }) {
  const { setting, of } = DEFAULTS[kind];
  const [seen] = useState(textsOf(settings[setting]));
  const [texts, setTexts] = useState(seen);
  const changes = changesOf(seen, texts);
  return (
    <Dialog title={`Limits of each ${kind}`} onClose={onClose}>
      <Form submit="Save" disabled={anyFault(texts) || Object.keys(changes).length === 0} onCancel={onClose} onSubmit={async () => {
        await change({ [setting]: changes });
        notify(`Changed the limits of each ${kind} without own ones.`);
        onClose();
      }}>
        {(problem) => (
          <>
            <p>{of} that has no limits of its own may have this much; root may have more.</p>
            <LimitFields texts={texts} onTexts={setTexts} problem={problem} focus />
          </>
        )}
      </Form>
    </Dialog>
  );
}

// A job counts again what everybody has.
export function Recount({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Count again" onClose={onClose}>
      <Form submit="Count again" onCancel={onClose} onSubmit={async () => {
        const job = await call("POST /quota-recount");
        notify(`Job ${job.id} counts again what everybody has.`);
        onClose();
      }}>
        {() => <p>What everybody has is counted once more, in the background; limits hold meanwhile. Counts that are wrong are mended, and the
          log says which.</p>}
      </Form>
    </Dialog>
  );
}

export function EditGrace({ settings, onClose }: { settings: QuotaSettings; onClose: () => void }) {
  const [space, setSpace] = useState(graceText(settings.space_grace_seconds));
  const [inodes, setInodes] = useState(graceText(settings.inode_grace_seconds));
  const space_grace_seconds = graceOf(space);
  const inode_grace_seconds = graceOf(inodes);
  const fault = (seconds: number | undefined) => (seconds === undefined ? "7d, 12h or 30m; at most ten years." : undefined);
  return (
    <Dialog title="Grace periods" onClose={onClose}>
      <Form submit="Save" disabled={space_grace_seconds === undefined || inode_grace_seconds === undefined} onCancel={onClose}
        onSubmit={async () => {
          await change({ space_grace_seconds, inode_grace_seconds });
          notify("Changed the grace periods.");
          onClose();
        }}>
        {(problem) => (
          <>
            <p>How long anybody may be above a soft limit. Those who are there now get the new length, too.</p>
            <TextField label="Of space" value={space} onValue={setSpace} error={problem?.errorOf("space_grace_seconds") ?? fault(space_grace_seconds)}
              hint="7d, 12h, 30m. 0: not at all." input={{ autocomplete: "off", autoFocus: true }} />
            <TextField label="Of inodes" value={inodes} onValue={setInodes} error={problem?.errorOf("inode_grace_seconds") ?? fault(inode_grace_seconds)}
              input={{ autocomplete: "off" }} />
          </>
        )}
      </Form>
    </Dialog>
  );
}
