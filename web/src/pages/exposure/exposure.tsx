// SPDX-License-Identifier: Apache-2.0
import { everyPage } from "../../api/every_page";
import { usePoll } from "../../api/use_poll";
import { Empty } from "../../parts/empty";
import { Link } from "../../parts/link";
import { Loaded } from "../../parts/loaded";
import { PageHead } from "../../parts/page_head";
import { SelectField } from "../../parts/select_field";
import { go, hrefWith, useRoute } from "../../route";
import { brickName } from "../devices/brick_words";
import { DeviceMap } from "./device_map";

const BRICKS_MS = 3000;

// Whose hands are on which memory, right now.
export function Exposure() {
  const bricks = usePoll("bricks", (signal) => everyPage("GET /bricks", { signal }), BRICKS_MS);
  const wanted = useRoute().query.get("brick");
  return (
    <>
      <PageHead title="Exposure map" lead="Every block of a device, and which client can reach it now without asking the server." />
      <Loaded from={bricks}>
        {({ items }) => {
          const brick = items.find((candidate) => candidate.id === wanted) ?? items[0];
          if (!brick) {
            return <Empty title="No device yet: there is no memory to reach."><Link href="/devices" class="button">Add a device</Link></Empty>;
          }
          return (
            <>
              {items.length > 1 && (
                <SelectField label="Device" value={brick.id} onValue={(id) => go(hrefWith({ brick: id, page: null }), "replace")}
                  options={items.map((each) => ({ value: each.id, label: brickName(each) }))} />
              )}
              <DeviceMap key={brick.id} brick={brick} />
            </>
          );
        }}
      </Loaded>
    </>
  );
}
