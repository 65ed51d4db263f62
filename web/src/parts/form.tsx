// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";
import { ProblemNote } from "./problem_note";

interface Props {
  submit: string;
  danger?: boolean;
  disabled?: boolean;
  onSubmit: () => Promise<void>;
  onCancel?: () => void;
  // Gets the last refusal, to show what is wrong beside its input. True: shown there, not again below.
  children: (problem: Problem | undefined) => ComponentChildren;
}

// A form that says what the server refuses, and cannot be sent twice.
export function Form({ submit, danger, disabled, onSubmit, onCancel, children }: Props) {
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const send = async (event: Event) => {
    event.preventDefault();
    if (busy || disabled) return;
    setBusy(true);
    setProblem(undefined);
    try {
      await onSubmit();
    } catch (error) {
      setProblem(asProblem(error));
    }
    setBusy(false);
  };
  return (
    <form onSubmit={(event) => void send(event)} noValidate>
      {children(problem)}
      <ProblemNote problem={problem} />
      <div class="actions actions-end">
        {onCancel && <button type="button" class="button" onClick={onCancel}>Cancel</button>}
        <button type="submit" class={`button ${danger ? "button-danger" : "button-main"}`} disabled={busy || disabled}>
          {busy ? "Working…" : submit}
        </button>
      </div>
    </form>
  );
}
