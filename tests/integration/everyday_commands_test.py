#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an operator types every day: each script of everyday_commands.txt on a mount, with `bash -e` in an empty directory.

`fails COMMAND` is for what must fail. A head there is "== name [programs that it needs]" or "== name, may fail: why". $M is the mount, $LOCAL a local directory.
What needs a program that is not installed is named at the end.

usage: everyday_commands_test.py BIN_DIRECTORY [--only NAME]
"""
import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import cluster

SECONDS = 90  # for one script, under sanitizers
# `set -e` does not look at commands behind "!".
PRELUDE = 'fails() { if "$@"; then echo "succeeded: $*"; return 1; fi; }\n'
HEAD = re.compile(r"== (?P<name>.*?)(?: \[(?P<needs>.*)\])?(?:, may fail: (?P<why>.*))?")


@dataclasses.dataclass
class Entry:
    name: str
    needs: list
    why: str | None  # it may fail
    script: str

    @staticmethod
    def all():
        text = pathlib.Path(__file__).with_name("everyday_commands.txt").read_text()
        for part in re.split(r"(?m)^(?=== )", text)[1:]:
            head, script = part.split("\n", 1)
            found = HEAD.fullmatch(head)
            yield Entry(found["name"], (found["needs"] or "").split(), found["why"], script)

    def missing(self):
        return [program for program in self.needs if not shutil.which(program)]

    def run(self, mount, local):
        """None if it succeeded, else what it said."""
        place = mount / re.sub(r"\W+", "-", self.name)
        place.mkdir()
        environment = os.environ | {"M": str(mount), "LOCAL": local, "HOME": local, "LC_ALL": "C.UTF-8"}
        ran = subprocess.Popen(["bash", "-ec", PRELUDE + self.script], cwd=place, env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True)
        try:
            output, _ = ran.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(ran.pid, signal.SIGKILL)
            output = ran.communicate()[0] + f"\nnot done within {SECONDS} s"
        return None if ran.returncode == 0 else f"exit code {ran.returncode}: {output.strip()[-800:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--only", help="the name of one entry")
    options = parser.parse_args()
    cluster.require_mounts()
    entries = [entry for entry in Entry.all() if options.only in (None, entry.name)]
    passed, failed, skipped = 0, [], []
    with cluster.Cluster(options.bin, pool_size="512M").start_all() as servers:
        mount = servers.mount()
        for entry in entries:
            if missing := entry.missing():
                skipped.append(f"{entry.name}: {', '.join(missing)} not installed")
                continue
            begun = time.monotonic()
            with tempfile.TemporaryDirectory() as local:
                error = entry.run(mount.path, local)
            if error and not entry.why:
                failed.append(f"{entry.name}: {error}")
            passed += not error
            said = "ok" if not error else f"fails as expected ({entry.why})" if entry.why else "FAILED"
            print(f"{time.monotonic() - begun:5.1f} s  {entry.name}: {said}", flush=True)
        mount.unmount()
    for one in skipped:
        print(f"skipped: {one}")
    for one in failed:
        print(f"--- {one}")
    print(f"{len(entries)} entries: {passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
