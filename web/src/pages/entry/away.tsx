// SPDX-License-Identifier: Apache-2.0
import { useEffect } from "preact/hooks";
import type { Problem } from "../../api/problem";
import { ProblemNote } from "../../parts/problem_note";
import { Entry } from "./entry";

const RETRY_MS = 3000;

// The server does not answer at all: say so, and go on by itself.
export function Away({ problem, retry }: { problem: Problem; retry: () => void }) {
  useEffect(() => {
    const timer = window.setInterval(retry, RETRY_MS);
    return () => window.clearInterval(timer);
  }, [retry]);
  return (
    <Entry title="The server does not answer">
      <ProblemNote problem={problem} retry={retry} />
    </Entry>
  );
}
