#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/totals.py: what it tells of passed, failed, skipped and missing tests, and its exit code. And tests/suite.py."""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
import suite  # noqa: E402
import totals  # noqa: E402

PASSED = '<testcase name="unit.good" time="0.5" status="run"><system-out>fine</system-out></testcase>'
SKIPPED = ('<testcase name="unit.verbs" time="0" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
           "<system-out>a.cc:12: Skipped\nthere is no RDMA device\n\n[  SKIPPED ] verbs</system-out></testcase>")
SKIPPED_BY_A_PROGRAM = ('<testcase name="interop.peer" time="0" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>'
                        "<system-out>skipped: the peer is not installed</system-out></testcase>")
FAILED = ('<testcase name="unit.bad" time="3" status="fail"><failure message=""/><system-out>' +
          "\n".join(f"line {number}" for number in range(100)) + "</system-out></testcase>")
FAILED_NOT = PASSED.replace("unit.good", "unit.bad")
NO_PROGRAM = '<testcase name="unit.lost" time="0" status="notrun"><skipped message="Unable to find executable"/></testcase>'
LAB = '<testcase name="two_hosts" time="0"><skipped message="no time is left"/></testcase>'


# A program that runs whole: as ctest tells of it, and what it says of its tests itself.
PROGRAM = '<testcase name="unit.some-test" time="5" status="run"><system-out>[ RUN      ] Names.AreKept</system-out></testcase>'
PROGRAM_FAILED = PROGRAM.replace('"run">', '"fail"><failure message=""/>')
PROGRAM_DIED = ('<testcase name="unit.some-test" time="5" status="fail"><failure message="SEGFAULT"/><system-out>'
                "[ RUN      ] Names.AreKept\n[       OK ] Names.AreKept (0 ms)\n[ RUN      ] Names.AreLong\nAddressSanitizer: bad"
                "</system-out></testcase>")
PART = '<testcase name="AreKept" status="run" result="completed" time="0.01" classname="Names"/>'
PART_FAILED = ('<testcase name="AreLong" status="run" result="completed" time="0.5" classname="Names">'
               '<failure message="a.cc:5&#x0A;1 is not 2"><![CDATA[a.cc:5\n1 is not 2]]></failure></testcase>')
PART_SKIPPED = ('<testcase name="AreNew" status="run" result="skipped" time="0" classname="Names">'
                '<skipped message="a.cc:9&#x0A;there is no disk"><![CDATA[a.cc:9\nthere is no disk]]></skipped></testcase>')


class Totals(unittest.TestCase):
    def told(self, names, whole=None, again=None, **suites):
        """The exit code and the text. `whole`: parts of unit.some-test; `again`: of the suite unit, run once more."""
        with tempfile.TemporaryDirectory() as build:
            folder, of_programs = pathlib.Path(build) / "results", pathlib.Path(build) / "dev" / "whole"
            folder.mkdir()
            of_programs.mkdir(parents=True)
            for name, cases in suites.items():
                (folder / f"{name}.xml").write_text(f'<testsuite time="90">{"".join(cases)}</testsuite>')
            if whole:
                (of_programs / "unit.some-test.xml").write_text(
                    f'<testsuites><testsuite name="Names">{"".join(whole)}</testsuite></testsuites>')
            if again:
                (folder / "unit.again.xml").write_text(f'<testsuite time="9">{"".join(again)}</testsuite>')
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                code = totals.main(folder, names)
        return code, out.getvalue()

    def test_all_passed(self):
        code, text = self.told(["unit"], unit=[PASSED])
        self.assertEqual(code, 0)
        self.assertRegex(text, r"unit +1 passed +0 failed +0 skipped +1\.5 min")

    def test_skipped_ones_are_named_with_their_reason(self):
        code, text = self.told(["unit", "lab"], unit=[PASSED, SKIPPED, SKIPPED_BY_A_PROGRAM], lab=[LAB])
        self.assertEqual(code, 0)
        self.assertIn("skipped in unit: there is no RDMA device (1)\n  unit.verbs\n", text)
        self.assertIn("skipped in unit: skipped: the peer is not installed (1)\n  interop.peer\n", text)
        self.assertIn("skipped in lab: no time is left (1)\n  two_hosts\n", text)
        self.assertRegex(text, r"unit +1 passed +0 failed +2 skipped")

    def test_a_failed_one_is_named_and_says_its_last_lines(self):
        code, text = self.told(["unit"], unit=[PASSED, FAILED])
        self.assertEqual(code, 1)
        self.assertIn("failed in unit: unit.bad (3 s)", text)
        self.assertIn("| line 99\n", text)
        self.assertNotIn("| line 59\n", text)
        self.assertTrue(text.endswith("  FAILED   unit: unit.bad\n"))

    def test_the_slowest_are_named(self):
        cases = [f'<testcase name="unit.number{number}" time="{number}" status="run"/>' for number in range(100)]
        text = self.told(["unit"], unit=cases)[1]
        self.assertIn("slowest in unit: unit.number99 99 s, unit.number98 98 s,", text)
        self.assertIn("unit.number88 88 s", text)
        self.assertNotIn("unit.number87 87 s", text)
        self.assertNotIn("slowest", self.told(["unit"], unit=cases[:20])[1])

    def test_what_could_not_start_has_failed(self):
        code, text = self.told(["unit"], unit=[PASSED, NO_PROGRAM])
        self.assertEqual(code, 1)
        self.assertIn("Unable to find executable", text)

    def test_a_program_that_runs_whole_is_each_of_its_tests(self):
        code, text = self.told(["unit"], unit=[PASSED, PROGRAM], whole=[PART, PART_SKIPPED])
        self.assertEqual(code, 0)
        self.assertIn("skipped in unit: there is no disk (1)\n  unit.Names.AreNew\n", text)
        self.assertRegex(text, r"unit +2 passed +0 failed +1 skipped")

    def test_a_failed_test_of_such_a_program_is_named(self):
        code, text = self.told(["unit"], unit=[PROGRAM_FAILED], whole=[PART, PART_FAILED])
        self.assertEqual(code, 1)
        self.assertIn("failed in unit: unit.Names.AreLong", text)
        self.assertIn("  | a.cc:5\n  | 1 is not 2\n", text)
        self.assertRegex(text, r"unit +1 passed +1 failed +0 skipped")

    def test_such_a_program_that_dies_says_in_which_test(self):
        code, text = self.told(["unit"], unit=[PASSED, PROGRAM_DIED])
        self.assertEqual(code, 1)
        self.assertTrue(text.endswith("FAILED   unit: unit.some-test in Names.AreLong (what comes behind that did not run)\n"), text)
        self.assertIn("  | AddressSanitizer: bad", text)

    def test_such_a_program_that_fails_behind_its_tests_has_failed(self):
        code, text = self.told(["unit"], unit=[PROGRAM_FAILED], whole=[PART])
        self.assertEqual(code, 1)
        self.assertTrue(text.endswith("  FAILED   unit: unit.some-test\n"), text)
        self.assertRegex(text, r"unit +1 passed +1 failed")

    def test_what_a_sanitizer_says_of_such_a_program_is_shown_with_the_test_it_was_in(self):
        report = "[ RUN      ] Names.AreLong\nWARNING: ThreadSanitizer: data race\n  Write of size 8\n[       OK ] Names.AreLong (1 ms)\n"
        program = PROGRAM_FAILED.replace("</system-out>", "\n" + report + "[ RUN      ] Names.More\n" * 100 + "</system-out>")
        text = self.told(["unit"], unit=[program], whole=[PART])[1]
        self.assertIn("It said at last:\n  | [ RUN      ] Names.AreLong\n  | WARNING: ThreadSanitizer: data race\n", text)

    def test_what_passed_alone_is_unsteady_and_says_how_it_failed(self):
        code, text = self.told(["unit"], unit=[PASSED, FAILED], again=[FAILED_NOT])
        self.assertEqual(code, 0)
        self.assertIn("  | line 99\n", text)
        self.assertTrue(text.endswith("  UNSTEADY unit: unit.bad (failed beside others, passed alone)\n"), text)
        self.assertRegex(text, r"unit +2 passed +0 failed +0 skipped")

    def test_what_failed_again_or_was_skipped_then_has_failed(self):
        skipped = SKIPPED.replace("unit.verbs", "unit.bad")
        for again in (FAILED, skipped, PASSED):
            code, text = self.told(["unit"], unit=[PASSED, FAILED], again=[again])
            self.assertEqual(code, 1)
            self.assertTrue(text.endswith("  FAILED   unit: unit.bad\n"), text)

    def test_a_program_that_passed_alone_is_its_tests(self):
        code, text = self.told(["unit"], unit=[PROGRAM_FAILED], again=[PROGRAM], whole=[PART])
        self.assertEqual(code, 0)
        self.assertRegex(text, r"unit +1 passed +0 failed")
        self.assertIn("UNSTEADY unit: unit.some-test", text)

    def test_a_suite_without_results_has_failed(self):
        code, text = self.told(["unit", "tsan"], unit=[PASSED])
        self.assertEqual(code, 1)
        self.assertRegex(text, r"tsan +nothing ran")


class Suite(unittest.TestCase):
    """tests/suite.py, with a ctest that fails where a file says so, as often as it says."""

    def run_suite(self, failing, times):
        """The exit code, and with what ctest was called. `failing` fail as often as `times`."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            log = folder / "build" / "dev" / "Testing" / "Temporary"
            log.mkdir(parents=True)
            (log / "LastTestsFailed.log").write_text("".join(f"{number}:{test}\n" for number, test in enumerate(failing)))
            (folder / "ctest").write_text('#!/bin/sh\necho "$*" >> calls\n'
                                          f'[ "$(wc -l < calls)" -gt {times} ] || exit 8\n')
            (folder / "ctest").chmod(0o755)
            code = subprocess.run([suite.__file__, "unit.xml", "dev", "-L", "all"], cwd=folder, capture_output=True, check=False,
                                  env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}).returncode
            return code, (folder / "calls").read_text().splitlines()

    def test_what_passes_runs_once(self):
        code, calls = self.run_suite([], 0)
        self.assertEqual((code, len(calls)), (0, 1))
        self.assertIn("--preset dev -L all", calls[0])

    def test_what_fails_runs_once_more_alone(self):
        code, calls = self.run_suite(["unit.a.b", "integration.c"], 1)
        self.assertEqual((code, len(calls)), (0, 2))
        self.assertIn(r"-R ^(unit\.a\.b|integration\.c)$", calls[1])
        self.assertIn("unit.again.xml", calls[1])
        self.assertNotIn("-L all", calls[1])

    def test_what_fails_again_has_failed(self):
        self.assertEqual(self.run_suite(["unit.a"], 2)[0], 8)

    def test_many_that_fail_run_once(self):
        code, calls = self.run_suite([f"unit.{number}" for number in range(suite.MOST + 1)], 1)
        self.assertEqual((code, len(calls)), (8, 1))

    def test_what_looks_for_lost_data_runs_once(self):
        for name in ("sim.seeds", "crash.kill", "ha.cluster"):
            code, calls = self.run_suite(["unit.a", name], 1)
            self.assertEqual((code, len(calls)), (8, 1), name)


class InTime(unittest.TestCase):
    """tests/in_time.sh, between `make test` and a suite."""

    def run_until(self, until, folder):
        return self.run_suite("tsan", until, folder, "exit 7").returncode

    @staticmethod
    def run_suite(suite, until, folder, command):
        environment = os.environ | {"PNFSRDMA_TEST_UNTIL": str(until)}
        return subprocess.run([HERE.parents[1] / "in_time.sh", suite, folder, "sh", "-c", command],
                              capture_output=True, text=True, env=environment, check=False)

    def test_a_suite_without_time_is_skipped_and_told(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.run_until(int(time.time()) + 60, folder), 0)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                self.assertEqual(totals.main(folder, ["tsan"]), 0)
            self.assertRegex(out.getvalue(), r"skipped in tsan: \d+ s are left of the time for all tests, 700 s are needed")

    def test_a_suite_with_time_runs_and_says_how_it_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.run_until(int(time.time()) + 3600, folder), 7)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])

    def test_the_lab_leaves_the_fuzzers_their_time_if_both_have_enough(self):
        now = int(time.time())
        with tempfile.TemporaryDirectory() as folder:
            for left, lab in ((1500, 1160), (500, 500)):
                said = self.run_suite("lab", now + left, folder, "echo $PNFSRDMA_TEST_UNTIL").stdout
                self.assertEqual(int(said), now + lab)
        unset = subprocess.run(["env", "-u", "PNFSRDMA_TEST_UNTIL", HERE.parents[1] / "in_time.sh", "lab", folder, "sh", "-c",
                                "echo ${PNFSRDMA_TEST_UNTIL-none}"], capture_output=True, text=True, check=False)
        self.assertEqual(unset.stdout, "none\n")


if __name__ == "__main__":
    unittest.main()
