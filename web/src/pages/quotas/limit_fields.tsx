// SPDX-License-Identifier: Apache-2.0
import type { Problem } from "../../api/problem";
import { TextField } from "../../parts/text_field";
import { limitFault, type LimitName, type LimitTexts } from "./quota_words";

interface Props {
  texts: LimitTexts;
  onTexts: (texts: LimitTexts) => void;
  problem: Problem | undefined;
  focus?: boolean;
}

export function LimitFields({ texts, onTexts, problem, focus = false }: Props) {
  const field = (name: LimitName, label: string, hint: string, first = false) => (
    <TextField label={label} value={texts[name]} onValue={(text) => onTexts({ ...texts, [name]: text })} hint={hint}
      error={problem?.errorOf(name) ?? limitFault(texts, name)} input={{ autocomplete: "off", autoFocus: first && focus }} />
  );
  return (
    <>
      <div class="field-row">
        {field("space_soft_bytes", "Space, soft", "May be exceeded for the grace period. 10G, 1T; empty: no limit.", true)}
        {field("space_hard_bytes", "Space, hard", "Is never exceeded.")}
      </div>
      <div class="field-row">
        {field("inodes_soft", "Inodes, soft", "Files, directories and links. 50K, 1M; empty: no limit.")}
        {field("inodes_hard", "Inodes, hard", "Is never exceeded.")}
      </div>
    </>
  );
}
