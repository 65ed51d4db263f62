#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one suite of ctest, and what failed of it once more, alone: on a machine with other work a test may run out of time.

usage: suite.py RESULTS.xml PRESET CTEST_ARGUMENT...   from the root of the checkout

RESULTS.xml is what ctest says of the first run, RESULTS.again.xml of the second one. tests/totals.py names who passed at
last as unsteady, with what it said when it failed. There is no second run for more than a few, nor for tests that look for
lost data (sim, crash, ha): one failure of theirs in a thousand is a defect.

Exit code: 0 if all passed, at last; else ctest's.
"""
import pathlib
import re
import subprocess
import sys

MOST = 3  # unsteady ones in a run
# LastTestsFailed.log: NUMBER:NAME
FAILED = re.compile(r"^\d+:(.+)$", re.MULTILINE)
ONCE = re.compile(r"^(sim|crash|ha)\.")


def failed_tests(build):
    log = build / "Testing" / "Temporary" / "LastTestsFailed.log"
    return FAILED.findall(log.read_text()) if log.exists() else []


def run(preset, results, arguments):
    return subprocess.run(["ctest", "--preset", preset, *arguments, "--no-tests=error", "--output-junit", str(results)],
                          check=False).returncode


def main(results, preset, *arguments):
    results = pathlib.Path(results).absolute()
    again = results.with_suffix(".again.xml")
    again.unlink(missing_ok=True)
    code = run(preset, results, arguments)
    if code == 0:
        return 0
    names = failed_tests(pathlib.Path("build") / preset)
    if not names or len(names) > MOST or any(map(ONCE.match, names)):
        return code
    print(f"once more, alone: {', '.join(names)}", flush=True)
    return run(preset, again, ["-R", f"^({'|'.join(map(re.escape, names))})$"])


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
