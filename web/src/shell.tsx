// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "preact/hooks";
import { PAGES } from "./pages";
import { useRoute } from "./route";
import { Empty } from "./parts/empty";
import { Link } from "./parts/link";
import { Notices } from "./parts/notices";
import { TopBar } from "./top_bar";

// Bar, navigation, and the page of the address.
export function Shell() {
  const route = useRoute();
  const page = PAGES.find((candidate) => candidate.path === route.page);
  const main = useRef<HTMLElement>(null);
  const navigation = useRef<HTMLElement>(null);
  const first = useRef(true);

  // A new page is announced by moving the focus to it, as a full load would.
  useEffect(() => {
    if (!first.current) main.current?.focus();
    first.current = false;
    window.scrollTo(0, 0);
    // Where the navigation is a strip, the page's own name stays in sight.
    navigation.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [route.page]);

  const Content = page?.component;
  return (
    <div class="shell">
      <a class="skip" href="#content" onClick={(event) => {
        event.preventDefault();
        main.current?.focus();
      }}>Skip to content</a>
      <TopBar />
      <nav class="nav" aria-label="Pages" ref={navigation}>
        {PAGES.map(({ path, title }) => (
          <Link key={path} href={`/${path}`} class="nav-link" current={page?.path === path}>{title}</Link>
        ))}
      </nav>
      <main id="content" class="content" ref={main} tabIndex={-1}>
        {Content
          ? <Content key={route.page} />
          : <Empty title="There is no such page."><Link href="/" class="button">To the overview</Link></Empty>}
      </main>
      <Notices />
    </div>
  );
}
