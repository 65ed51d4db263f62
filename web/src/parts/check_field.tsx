// SPDX-License-Identifier: Apache-2.0
import { useId } from "preact/hooks";

interface Props {
  label: string;
  hint?: string;
  checked: boolean;
  onValue: (checked: boolean) => void;
}

export function CheckField({ label, hint, checked, onValue }: Props) {
  const id = useId();
  return (
    <div class="check-field">
      <input id={id} type="checkbox" checked={checked} aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={(event) => onValue(event.currentTarget.checked)} />
      <div>
        <label for={id}>{label}</label>
        {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
      </div>
    </div>
  );
}
