// SPDX-License-Identifier: Apache-2.0
import { call } from "../../api/call";
import { asProblem } from "../../api/problem";
import { plural } from "../../format/number";
import { notify } from "../../notices";

// Takes a layout from its holder. When this returns every handle of it is dead. The client asks for a new one when
// it next needs the file: nothing is lost that it had flushed.
export async function revokeLayout(id: string, path: string | null): Promise<boolean> {
  const begin = performance.now();
  try {
    const { grants } = await call("DELETE /layouts/{id}", { path: { id } });
    const took = Math.round(performance.now() - begin);
    notify(`Revoked ${path ?? "the layout"}: ${plural(grants, "handle")} dead after ${took} ms.`);
    return true;
  } catch (error) {
    const problem = asProblem(error);
    if (problem.status === 404) notify("That layout is gone already.");
    else notify(problem.message, "bad");
    return problem.status === 404;
  }
}
