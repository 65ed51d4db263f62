#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make test` ends with: every skipped test with its reason, the slowest ones, the end of what each failed one said,
and the totals.

usage: totals.py FOLDER SUITE...   reads FOLDER/SUITE.xml (JUnit, as ctest and tests/vm/lab.py write it)

A program that ctest runs as one case (WHOLE in cmake/Module.cmake) is counted as the tests in it: they are in
FOLDER/../PRESET/whole. What failed and then passed alone (SUITE.again.xml, by tests/suite.py) is named as unsteady.

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
PRESETS = {"unit": "dev", "tsan": "tsan"}  # of those suites that have programs which run whole
# GoogleTest: a test begins, and it ends.
BEGUN = re.compile(r"^\[ RUN      \] (\S+)", re.MULTILINE)
ENDED = re.compile(r"^\[  (?:     OK|FAILED |SKIPPED) \] (\S+)", re.MULTILINE)
REPORT = re.compile(r"(?:ERROR|WARNING): \w+Sanitizer|runtime error: ")
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
        """Its end; where a sanitizer has said something, that, from the test on in which it was."""
        if report := REPORT.search(self.said):
            begun = [match.start() for match in BEGUN.finditer(self.said, 0, report.start())]
            return self.said[(begun or [report.start()])[-1]:].splitlines()[:LINES]
        return self.said.splitlines()[-LINES:] or [self.message]


class Part(Case):
    """A test of a program that ran whole, as GoogleTest tells of it."""

    def __init__(self, element, program):
        super().__init__(element)
        self.name = f"{program.name.split('.')[0]}.{element.get('classname')}.{self.name}"
        self.said = "\n".join(failure.text or "" for failure in element.iter("failure"))
        self.failed = element.find("failure") is not None
        self.skipped = not self.failed and (element.find("skipped") is not None or element.get("status") == "notrun")
        self.message = self.message.split("\n", 1)[-1]  # behind the place


def parts_of(program, path):
    """The tests of the program of this case, by the file that it leaves; and itself, if it failed and none of them did."""
    root = ElementTree.parse(path).getroot() if path.exists() else ElementTree.Element("testsuites")
    parts = [Part(element, program) for element in root.iter("testcase")]
    if not parts or program.failed and not any(part.failed for part in parts):
        parts.append(program)
        begun = BEGUN.findall(program.said)
        if program.failed and len(begun) > 1 and begun[-1] not in ENDED.findall(program.said):
            program.name += f" in {begun[-1]} (what comes behind that did not run)"
    return parts


def passed_again(path):
    again = path.with_suffix(".again.xml")
    cases = [Case(element) for element in ElementTree.parse(again).getroot().iter("testcase")] if again.exists() else []
    return {case.name for case in cases if not case.failed and not case.skipped}


class Suite:
    def __init__(self, name, path):
        self.name = name
        root = ElementTree.parse(path).getroot() if path.exists() else ElementTree.Element("testsuite")
        self.seconds = float(root.get("time") or 0)
        whole = path.parent.parent / PRESETS.get(name, "") / "whole"
        programs = [Case(element) for element in root.iter("testcase")]
        self.unsteady = [program for program in programs if program.failed and program.name in passed_again(path)]
        for program in self.unsteady:
            program.failed = False
        self.cases = [part for program in programs for part in parts_of(program, whole / f"{program.name}.xml")]
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
        for case in [*suite.failed, *suite.unsteady]:
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
        for case in suite.unsteady:
            print(f"  UNSTEADY {suite.name}: {case.name} (failed beside others, passed alone)")
    return 0 if all(suite.good for suite in suites) else 1


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
