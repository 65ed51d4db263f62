#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/events.md has every event that the programs log, with its level, and no other.

usage: events_test.py
"""
import collections
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).parents[2]
LEVELS = ("debug", "info", "warning", "error")
CALL = re.compile(r'\blog_(debug|info|warning|error)\(\s*("?)([^",]*)"?,\s*"?(.)([^\s"]*)')
# The heading of a section whose tables have no column of components says which one it is about.
COMPONENT = {"mds: clients, state, configuration": "mds", "snapshots": "snapshots", "quotas": "quotas", "meta: the metadata store": "meta", "console": "console", "Brick": "brick",
             "fuse": "fuse", "library": "library", "client: mounts, and programs with the library": "client",
             "initiator: data": "initiator", "session: calls to the MDS": "session"}


def logged():
    """{(component, event): levels} of the sources."""
    found = collections.defaultdict(set)
    for folder in ("server", "shared", "fuse-client", "cli", "library"):
        for source in sorted((ROOT / folder).rglob("*")):
            if source.suffix not in (".cc", ".h") or source.name == "log.h":
                continue
            for level, quote, component, first, rest in CALL.findall(source.read_text()):
                event = (first + rest).rstrip(":")
                if not quote or not re.fullmatch(r"[a-z][a-z0-9-]*", event):
                    raise AssertionError(f"{source.relative_to(ROOT)}: the event of a log line is a literal word, not {component!r} {event!r}")
                found[component, event].add(level)
    return dict(found)


def catalogue():
    """The same of the page. A row has an event, a level and a meaning."""
    found, heading, columns = {}, "", []
    for line in (ROOT / "docs/events.md").read_text().splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if "event" in cells:
                columns = cells
            elif columns and "`" in cells[columns.index("event")]:
                row = dict(zip(columns, cells, strict=True))
                key = row.get("component") or COMPONENT[heading], row["event"].strip("`")
                if key in found:
                    raise AssertionError(f"{key} is there twice")
                found[key] = set(row["level"].split(", "))
        else:
            columns = []
    return found


class Events(unittest.TestCase):
    def test_every_event_of_the_programs_is_explained_and_no_other(self):
        of_sources, of_page = logged(), catalogue()
        self.assertGreater(len(of_sources), 100)
        self.assertEqual(set(of_sources) - set(of_page), set(), "logged, and not in docs/events.md")
        self.assertEqual(set(of_page) - set(of_sources), set(), "in docs/events.md, and logged nowhere")
        self.assertEqual({key: levels for key, levels in of_page.items() if of_sources[key] != levels}, {}, "another level")


if __name__ == "__main__":
    unittest.main()
