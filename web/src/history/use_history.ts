// SPDX-License-Identifier: Apache-2.0
import type { History } from "../api/generated";
import { call } from "../api/call";
import { asProblem } from "../api/problem";
import { type Polled, usePoll } from "../api/use_poll";
import { pollMilliseconds, type Range, type Subject } from "./ranges";

// null: the server has seen nothing of it yet.
export function useHistory({ of, id }: Subject, range: Range): Polled<History | null> {
  return usePoll(`history ${of} ${id} ${range}`, async (signal) => {
    try {
      return await call("GET /history", { query: { of, id, range }, signal });
    } catch (error) {
      if (asProblem(error).status === 404) return null;
      throw error;
    }
  }, pollMilliseconds(range));
}
