// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";

// Where the reader is, as the browser's own address: /devices, /settings/users?…. The server answers every path
// without a dot with the page, so that a reload and a bookmark work.
export interface Route {
  // "devices", "settings", or "" for the overview.
  page: string;
  // What stands behind it: "users" in /settings/users.
  part: string;
  query: URLSearchParams;
}

const CHANGED = "pnfsrdma-route";

export function routeOf(pathname: string, search: string): Route {
  const [page = "", part = ""] = pathname.split("/").filter(Boolean).map(decodeURIComponent);
  return { page, part, query: new URLSearchParams(search) };
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => routeOf(location.pathname, location.search));
  useEffect(() => {
    const read = () => setRoute(routeOf(location.pathname, location.search));
    window.addEventListener("popstate", read);
    window.addEventListener(CHANGED, read);
    return () => {
      window.removeEventListener("popstate", read);
      window.removeEventListener(CHANGED, read);
    };
  }, []);
  return route;
}

// The present address with other parameters; null and "" take one away.
export function hrefWith(changes: Record<string, string | null>, { pathname, search } = location as Pick<Location, "pathname" | "search">): string {
  const query = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  return text ? `${pathname}?${text}` : pathname;
}

export function go(href: string, how: "push" | "replace" = "push"): void {
  if (how === "push") history.pushState(null, "", href);
  else history.replaceState(null, "", href);
  window.dispatchEvent(new Event(CHANGED));
}
