// SPDX-License-Identifier: Apache-2.0
import type { ComponentType } from "preact";
import type { OperationName } from "../../api/call";
import { Empty } from "../../parts/empty";
import { Link } from "../../parts/link";
import { PageHead } from "../../parts/page_head";
import { useRoute } from "../../route";
import { useMay } from "../../session";
import { Account } from "./account";
import { Audit } from "./audit";
import { Server } from "./server";
import { Tokens } from "./tokens";
import { Users } from "./users";
import { Webhook } from "./webhook";

// Parts of the settings, each with what a reader must be allowed to see it.
const PARTS: { path: string; title: string; needs: OperationName; component: ComponentType }[] = [
  { path: "", title: "Account", needs: "GET /session", component: Account },
  { path: "tokens", title: "Tokens", needs: "GET /tokens", component: Tokens },
  { path: "users", title: "Users", needs: "GET /users", component: Users },
  { path: "server", title: "Server", needs: "GET /configuration", component: Server },
  { path: "webhook", title: "Webhook", needs: "GET /webhook", component: Webhook },
  { path: "audit", title: "Audit", needs: "GET /audit", component: Audit },
];

export function Settings() {
  const { part } = useRoute();
  const may = useMay();
  const parts = PARTS.filter(({ needs }) => may(needs));
  const chosen = parts.find(({ path }) => path === part);
  const Content = chosen?.component;
  return (
    <>
      <PageHead title="Settings" />
      <nav class="tabs" aria-label="Settings">
        {parts.map(({ path, title }) => (
          <Link key={path} href={path ? `/settings/${path}` : "/settings"} class="tab" current={path === part}>{title}</Link>
        ))}
      </nav>
      {Content
        ? <Content />
        : <Empty title="There is no such page, or your role may not see it."><Link href="/settings" class="button">Your account</Link></Empty>}
    </>
  );
}
