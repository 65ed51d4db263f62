// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface Props {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}

// The browser's own modal dialog: it keeps the focus inside, closes on Escape and gives the focus back.
export function Dialog({ title, onClose, children }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={element} aria-labelledby={id} onCancel={(event) => {
      event.preventDefault();
      onClose();
    }}>
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        <button type="button" class="button button-plain" aria-label="Close" onClick={onClose}>×</button>
      </header>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}
