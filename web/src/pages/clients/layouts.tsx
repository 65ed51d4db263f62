// SPDX-License-Identifier: Apache-2.0
import { PageHead } from "../../parts/page_head";
import { Panel } from "../../parts/panel";
import { LayoutTable } from "./layout_table";

// Who holds which file, of all clients.
export function Layouts() {
  return (
    <>
      <PageHead title="Layouts" lead="Parts of files that clients read and write directly, and the memory they reach by them." />
      <Panel title="All layouts"><LayoutTable empty="No client holds a layout, so no client can reach any memory." /></Panel>
    </>
  );
}
