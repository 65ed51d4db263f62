#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make test` ends with: every skipped test with its reason, the slowest ones, the end of what each failed one said,
and the totals.

usage: totals.py FOLDER SUITE...   reads FOLDER/SUITE.xml (JUnit, as ctest and tests/vm/lab.py write it)

Exit code: 0 when every suite has results and none failed, 1 otherwise.
"""
import collections
import pathlib
import re
import sys
import textwrap
import xml.etree.ElementTree as ElementTree

LINES = 40  # of what a failed test said
SLOWEST, SLOW_SECONDS = 12, 20  # so many of a suite are named, none that is faster
# GoogleTest: the line below "file:line: Skipped". Programs: the line that says it.
REASON = re.compile(r": Skipped\n(.+)|^(.*\bskipped: .+)", re.MULTILINE | re.IGNORECASE)


class Case:
    def __init__(self, element):
        self.name = element.get("name")
        self.seconds = float(element.get("time") or 0)
        self.said = element.findtext("system-out") or ""
        skipped = element.find("skipped")
        self.message = skipped.get("message", "") if skipped is not None else ""
        # What ctest could not start (no program, a fixture that failed) has <skipped>, too.
        not_started = element.get("status") == "notrun" and not self.message.startswith("SKIP_")
        self.failed = element.find("failure") is not None or not_started
        self.skipped = skipped is not None and not not_started

    def reason(self):
        if match := REASON.search(self.said):
            return (match[1] or match[2]).strip()
        return self.message or "no reason is given"

    def last_words(self):
        return self.said.splitlines()[-LINES:] or [self.message]


class Suite:
    def __init__(self, name, path):
        self.name = name
        root = ElementTree.parse(path).getroot() if path.exists() else ElementTree.Element("testsuite")
        self.seconds = float(root.get("time") or 0)
        self.cases = [Case(element) for element in root.iter("testcase")]
        self.skipped = [case for case in self.cases if case.skipped]
        self.failed = [case for case in self.cases if case.failed]
        self.good = bool(self.cases) and not self.failed

    def total(self):
        if not self.cases:
            return f"  {self.name:8} nothing ran: what went wrong is above"
        passed = len(self.cases) - len(self.failed) - len(self.skipped)
        return (f"  {self.name:8} {passed:5} passed {len(self.failed):5} failed {len(self.skipped):5} skipped "
                f"{self.seconds / 60:6.1f} min")


def print_skipped(suites):
    by_reason = collections.defaultdict(list)
    for suite in suites:
        for case in suite.skipped:
            by_reason[suite.name, case.reason()].append(case.name)
    for (suite, reason), names in by_reason.items():
        print(f"skipped in {suite}: {reason} ({len(names)})")
        print(textwrap.fill(", ".join(names), 120, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))


def print_slowest(suites):
    for suite in suites:
        slow = sorted((case for case in suite.cases if case.seconds >= SLOW_SECONDS), key=lambda case: -case.seconds)
        if not slow:
            continue
        named = ", ".join(f"{case.name} {case.seconds:.0f} s" for case in slow[:SLOWEST])
        print(textwrap.fill(f"slowest in {suite.name}: {named}", 120, subsequent_indent="  ", break_on_hyphens=False))


def print_failed(suites):
    for suite in suites:
        for case in suite.failed:
            print(f"failed in {suite.name}: {case.name} ({case.seconds:.0f} s). It said at last:")
            for line in case.last_words():
                print(f"  | {line}")


def main(folder, names):
    suites = [Suite(name, pathlib.Path(folder) / f"{name}.xml") for name in names]
    print()
    print_skipped(suites)
    print_slowest(suites)
    print_failed(suites)
    print("totals:")
    for suite in suites:
        print(suite.total())
    for suite in suites:
        for case in suite.failed:
            print(f"  FAILED   {suite.name}: {case.name}")
    return 0 if all(suite.good for suite in suites) else 1


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
