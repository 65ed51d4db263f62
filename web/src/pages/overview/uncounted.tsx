// SPDX-License-Identifier: Apache-2.0
import type { Brick } from "../../api/generated";
import { plural } from "../../format/number";

// What the charts cannot show: an RDMA device moves bytes past every processor of the server.
export function Uncounted({ bricks }: { bricks: Pick<Brick, "connections">[] }) {
  const verbs = bricks.reduce((sum, brick) => sum + (brick.connections.verbs ?? 0), 0);
  if (verbs === 0) return null;
  return (
    <p class="note">
      {plural(verbs, "connection")} by verbs: RDMA devices move their bytes without the server's CPU, so they are not counted
      here. The mounts count them: <code>pnfsrdma stat</code>, or <code>-o metrics=</code> for Prometheus.
    </p>
  );
}
