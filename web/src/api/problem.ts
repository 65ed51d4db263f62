// SPDX-License-Identifier: Apache-2.0
import type { Holders, Problem as ProblemDetails } from "./generated";

// A refusal of the server (RFC 9457), or a failure to reach it (status 0), as something to throw and to show.
export class Problem extends Error {
  constructor(readonly details: ProblemDetails) {
    super(details.detail ?? details.title);
  }

  // The stable name a program looks at: the last part of `type`.
  get kind(): string {
    return this.details.type.split("/").pop() ?? "";
  }

  get status(): number {
    return this.details.status;
  }

  get fix(): string | undefined {
    return this.details.fix;
  }

  get holders(): Holders | undefined {
    return this.details.holders;
  }

  // What is wrong with one member of the request's body.
  errorOf(member: string): string | undefined {
    return this.details.errors?.find((error) => error.pointer.replace(/^\//, "").split("/")[0] === member)?.detail;
  }
}

export function unreachable(): Problem {
  return new Problem({
    type: "unreachable",
    title: "The server does not answer",
    status: 0,
    detail: "The server does not answer, or the connection to it is broken.",
    fix: "Check whether pnfsrdma-mdsd is running (systemctl status pnfsrdma-mdsd). This page continues when the server is back.",
  });
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const detail = error instanceof Error ? error.message : String(error);
  return new Problem({ type: "page-error", title: "The page failed", status: 0, detail, fix: "Reload the page." });
}

// From an answer that is not 2xx. One without problem details (a proxy in between) still names its status.
export async function problemFrom(response: Response): Promise<Problem> {
  try {
    const details = (await response.json()) as ProblemDetails;
    if (typeof details?.type === "string" && typeof details.title === "string") {
      return new Problem({ ...details, status: response.status });
    }
  } catch {
    // Not JSON: told below by its status alone.
  }
  return new Problem({
    type: "unexpected-answer",
    title: `The server answered ${response.status}`,
    status: response.status,
    fix: "See the log of pnfsrdma-mdsd.",
  });
}
