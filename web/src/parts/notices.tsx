// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { dismiss, watchNotices, type Notice } from "../notices";

export function Notices() {
  const [notices, setNotices] = useState<Notice[]>([]);
  useEffect(() => watchNotices(setNotices), []);
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.map((notice) => (
        <p key={notice.id} class={`notice notice-${notice.tone}`}>
          {notice.text}
          <button type="button" class="button button-plain" aria-label="Dismiss" onClick={() => dismiss(notice.id)}>×</button>
        </p>
      ))}
    </div>
  );
}
