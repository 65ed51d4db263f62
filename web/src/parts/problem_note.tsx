// SPDX-License-Identifier: Apache-2.0
import type { Problem } from "../api/problem";
import { bytesText, plural } from "../format/number";

// What went wrong, and what to do about it.
export function ProblemNote({ problem, retry }: { problem: Problem | undefined; retry?: () => void }) {
  if (!problem) return null;
  const { details, holders } = problem;
  return (
    <div class="note note-bad" role="alert">
      <p><strong>{details.title}.</strong> {details.detail && details.detail !== details.title ? details.detail : ""}</p>
      {(details.errors?.length ?? 0) > 0 && (
        <ul>{details.errors?.map((error) => <li key={error.pointer}><code>{error.pointer}</code> {error.detail}</li>)}</ul>
      )}
      {holders && (
        <p>
          {plural(holders.files, "file")} with {bytesText(holders.bytes)} still live there
          {holders.exports.length > 0 && <>, in {holders.exports.map((path) => <code key={path}>{path} </code>)}</>}
        </p>
      )}
      {details.fix && <p class="fix">{details.fix}</p>}
      {retry && <button type="button" class="button" onClick={retry}>Try again</button>}
    </div>
  );
}
