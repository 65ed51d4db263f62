// SPDX-License-Identifier: Apache-2.0
import { call } from "../../api/call";
import { usePoll } from "../../api/use_poll";
import { Loaded } from "../../parts/loaded";
import { nfsPort } from "./export_rules";

// What to type on a client, with the port this server listens on.
export function MountCommands() {
  const configuration = usePoll("configuration of listening", (signal) => call("GET /configuration", { signal }), 0);
  return (
    <Loaded from={configuration}>
      {({ settings }) => {
        const port = nfsPort(settings.listen?.value);
        return (
          <pre class="shell-line" tabIndex={0} aria-label="Commands">{`mount -t pnfsrdma -o port=${port} ${location.hostname}:/PATH /mnt        # memory over the network
mount -t nfs4 -o vers=4.2,port=${port} ${location.hostname}:/PATH /mnt  # the kernel's client, through the server`}</pre>
        );
      }}
    </Loaded>
  );
}
