// SPDX-License-Identifier: Apache-2.0
import { AlertCount } from "./alert_count";
import { call } from "./api/call";
import { asProblem } from "./api/problem";
import { usePoll } from "./api/use_poll";
import { notify } from "./notices";
import { Link } from "./parts/link";
import { Mark } from "./parts/mark";
import { ThemeSwitch } from "./parts/theme_switch";
import { useSession } from "./session";

const HEALTH_MS = 3000;

// Which server, whether it is well, what asks for attention, who is logged in.
export function TopBar() {
  const { session, logOut } = useSession();
  const health = usePoll("health", (signal) => call("GET /health", { signal }), HEALTH_MS);
  const status = health.problem ? "away" : health.value?.status ?? "unknown";
  const words = { ok: "Healthy", warning: "Needs attention", failed: "Failed", away: "Server unreachable", unknown: "Asking…" };
  return (
    <header class="top">
      <Link href="/" class="brand"><Mark /><span>pnfsrdma</span></Link>
      <span class="host" title="The server this page came from">{location.host}</span>
      <Link href="/" class={`health health-${status}`}>
        <span class="health-dot" aria-hidden="true" /><span role="status">{words[status]}</span>
      </Link>
      <AlertCount />
      <span class="top-space" />
      <ThemeSwitch />
      <Link href="/settings" class="who">{session.user} <span class="muted">{session.role}</span></Link>
      {session.method === "password" && (
        <button type="button" class="button" onClick={() => {
          logOut().catch((error: unknown) => notify(asProblem(error).message, "bad"));
        }}>Log out</button>
      )}
    </header>
  );
}
