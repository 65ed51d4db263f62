// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren, InputHTMLAttributes } from "preact";
import { Field } from "./field";

interface Props {
  label: string;
  value: string;
  onValue: (value: string) => void;
  hint?: ComponentChildren;
  error?: string;
  input?: InputHTMLAttributes<HTMLInputElement>;
}

export function TextField({ label, value, onValue, hint, error, input }: Props) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(ties) => (
        <input type="text" spellcheck={false} {...input} {...ties} value={value}
          onInput={(event) => onValue(event.currentTarget.value)} />
      )}
    </Field>
  );
}
