// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface Props {
  label: string;
  hint?: ComponentChildren;
  error?: string;
  // Gets what ties the input to its label, hint and error.
  children: (ties: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean | undefined }) => ComponentChildren;
}

// A labelled input with its hint and what is wrong with it.
export function Field({ label, hint, error, children }: Props) {
  const id = useId();
  const hintId = `${id}-hint`;
  const errorId = `${id}-error`;
  const described = [hint ? hintId : "", error ? errorId : ""].filter(Boolean).join(" ") || undefined;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": described, "aria-invalid": error ? true : undefined })}
      {hint && <p class="hint" id={hintId}>{hint}</p>}
      {error && <p class="field-error" id={errorId} role="alert">{error}</p>}
    </div>
  );
}
