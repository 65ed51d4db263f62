// SPDX-License-Identifier: Apache-2.0
import { Field } from "./field";

interface Props<T extends string> {
  label: string;
  value: T;
  options: readonly { value: T; label: string }[];
  onValue: (value: T) => void;
  hint?: string;
}

export function SelectField<T extends string>({ label, value, options, onValue, hint }: Props<T>) {
  return (
    <Field label={label} hint={hint}>
      {(ties) => (
        <select {...ties} value={value} onChange={(event) => onValue(event.currentTarget.value as T)}>
          {options.map((option) => <option key={option.value} value={option.value}>{option.label}</option>)}
        </select>
      )}
    </Field>
  );
}
