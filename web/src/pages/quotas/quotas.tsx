// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Quota, QuotaSettings } from "../../api/generated";
import { call } from "../../api/call";
import { usePoll } from "../../api/use_poll";
import { Empty } from "../../parts/empty";
import { Loaded } from "../../parts/loaded";
import { PageHead } from "../../parts/page_head";
import { Panel } from "../../parts/panel";
import { Segments } from "../../parts/segments";
import { go, hrefWith, useRoute } from "../../route";
import { useMay } from "../../session";
import { EditLimits } from "./edit_limits";
import { NewLimits } from "./new_limits";
import { NewTree } from "./new_tree";
import { EditDefaults, EditGrace, Recount, SettingFacts, SwitchOn } from "./quota_settings";
import { QuotaTable } from "./quota_table";
import { RemoveQuota } from "./remove_quota";

const SETTINGS_MS = 3000;
const KINDS = [
  { value: "", label: "All" }, { value: "user", label: "Users" }, { value: "group", label: "Groups" }, { value: "tree", label: "Trees" },
] as const;
type Choice = (typeof KINDS)[number]["value"];

type Open = { what: "limits" | "tree" | "on" | "recount" } | { what: "grace" | "user" | "group"; settings: QuotaSettings } | { what: "edit" | "remove"; of: Quota } | null;

export function Quotas() {
  const settings = usePoll("quota settings", (signal) => call("GET /quota-settings", { signal }), SETTINGS_MS);
  const [open, setOpen] = useState<Open>(null);
  const [changes, setChanges] = useState(0);
  const may = useMay();
  const asked = useRoute().query.get("kind") ?? "";
  const kind: Choice = KINDS.find(({ value }) => value === asked)?.value ?? "";
  const close = () => {
    setOpen(null);
    setChanges((old) => old + 1);
    settings.refresh();
  };
  const ofSettings = (what: "grace" | "user" | "group") => settings.value && setOpen({ what, settings: settings.value });
  const create = may("PATCH /quotas/{kind}/{who}") && (
    <>
      <button type="button" class="button" onClick={() => setOpen({ what: "tree" })}>New quota tree</button>{" "}
      <button type="button" class="button button-main" onClick={() => setOpen({ what: "limits" })}>New limits</button>
    </>
  );
  return (
    <>
      <PageHead title="Quotas" lead="How much users, groups and directories have, and how much they may have.">{create}</PageHead>
      <Panel title="State" aside={settings.value && may("PATCH /quota-settings") && (
        <div class="actions">
          {settings.value.state === "off" &&
            <button type="button" class="button" onClick={() => setOpen({ what: "on" })}>Switch on…</button>}
          <button type="button" class="button" onClick={() => ofSettings("grace")}>Grace periods…</button>
          <button type="button" class="button" onClick={() => ofSettings("user")}>Each user…</button>
          <button type="button" class="button" onClick={() => ofSettings("group")}>Each group…</button>
          {settings.value.state === "on" &&
            <button type="button" class="button" onClick={() => setOpen({ what: "recount" })}>Count again…</button>}
        </div>
      )}>
        <Loaded from={settings}>{(value) => <SettingFacts settings={value} />}</Loaded>
      </Panel>
      <Panel title="Who has how much" aside={
        <Segments label="Kind" options={KINDS} value={kind} onValue={(value) => go(hrefWith({ kind: value, page: null }), "replace")} />
      }>
        <QuotaTable kind={kind || undefined} changes={changes} onEdit={(of) => setOpen({ what: "edit", of })}
          onRemove={(of) => setOpen({ what: "remove", of })}
          empty={settings.value?.state === "off"
            ? <Empty title="Quotas are off: nothing is counted."><p>The first limit, or the first quota tree, switches them on.</p>{create}</Empty>
            : <Empty title={kind === "tree" ? "There is no quota tree." : "Nobody has files or limits."} />} />
      </Panel>
      {open?.what === "limits" && <NewLimits onClose={close} />}
      {open?.what === "tree" && <NewTree onClose={close} />}
      {open?.what === "on" && <SwitchOn onClose={close} />}
      {open?.what === "grace" && <EditGrace settings={open.settings} onClose={close} />}
      {(open?.what === "user" || open?.what === "group") &&
        <EditDefaults kind={open.what} settings={open.settings} onClose={close} />}
      {open?.what === "recount" && <Recount onClose={close} />}
      {open?.what === "edit" && <EditLimits of={open.of} onClose={close} />}
      {open?.what === "remove" && <RemoveQuota of={open.of} onClose={close} />}
    </>
  );
}
