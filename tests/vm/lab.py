#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lab: real verbs (Soft-RoCE), real device DAX and the Linux kernel's own NFS client in a QEMU machine.

  lab.py shell                   boots, prepares rxe0 and /dev/dax0.0, gives a shell
  lab.py run COMMAND [WORD...]   boots, runs one command (in /root; /source is this checkout, /build its build)
  lab.py test [SCENARIO...]      builds and runs the scenarios (tests/vm/scenarios), prints each result and the totals
  lab.py compare [transport|mount|durable|library]  measures us beside perftest, the kernel's NFS/RDMA client and librpma, prints tables
  lab.py prepare                 makes the tree and builds, runs nothing

The cache (tree, builds, ccache) is $PNFSRDMA_LAB_CACHE, or pnfsrdma-lab in $XDG_CACHE_HOME or ~/.cache. No scenario begins
after $PNFSRDMA_TEST_UNTIL (seconds since 1970), if that is set: it is skipped, and says so.
"""
import argparse
import fcntl
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import scenarios
from machine import Machine, accelerator

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


def cache_directory():
    named = os.environ.get("PNFSRDMA_LAB_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    path = pathlib.Path(named) if named else pathlib.Path(base) / "pnfsrdma-lab"
    path.mkdir(parents=True, exist_ok=True)
    return path.resolve()


def impossible():
    """Why there can be no lab on this host, or None."""
    cause = ("root is needed to make the Debian 13 tree" if os.geteuid() != 0 else
             "the lab is for x86_64" if os.uname().machine != "x86_64" else None)
    if not cause and subprocess.run([HERE / "../../packaging/dependencies.sh", "lab"], check=False).returncode != 0:
        cause = "QEMU and debootstrap cannot be installed (above)"
    for program in ("qemu-system-x86_64", "debootstrap", "cpio"):
        if not cause and not shutil.which(program):
            cause = f"{program} is missing"
    return cause


def skip(cause, results):
    if results:
        tally = scenarios.Tally()
        tally.line(f"SKIP lab: {cause}\n")
        tally.write(results, 0)
    print(f"lab: skipped: {cause}")
    return SKIPPED


def prepare(cache, targets=(), build=True):
    """Makes what a machine needs; returns the build folder."""
    began = time.monotonic()
    for script in ("tree.sh", "initramfs.sh"):
        code = subprocess.run([HERE / script, cache], check=False).returncode
        if code != 0:
            raise SystemExit(SKIPPED if code == SKIPPED else 1)
    made = time.monotonic()
    if not build:
        path = cache / "build" / hashlib.sha256(str(HERE.parents[1]).encode()).hexdigest()[:12]
        path.mkdir(parents=True, exist_ok=True)
        return path
    done = subprocess.run([HERE / "build.sh", cache, *targets], check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(1)
    print(f"lab: the tree took {made - began:.0f} s, the build in it {time.monotonic() - made:.0f} s", flush=True)
    return pathlib.Path(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["shell", "run", "test", "compare", "prepare"])
    parser.add_argument("words", nargs=argparse.REMAINDER)
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--memory", default="3G")
    parser.add_argument("--seconds", type=float, default=600, help="hard limit of a run")
    parser.add_argument("--target", action="append", default=[], help="build this target (again: several)")
    parser.add_argument("--no-build", action="store_true", help="take the build as it is")
    parser.add_argument("--out", help="a folder the machine sees as /out, kept")
    parser.add_argument("--results", type=pathlib.Path, help="test: write what came of each case to this file, as JUnit")
    options = parser.parse_args()

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # through every `with`: no machine stays behind
    cause = impossible()
    if not cause and options.action == "test" and time.time() >= scenarios.end_of_time():
        cause = scenarios.NO_TIME
    if cause:
        return skip(cause, options.results)
    cache = cache_directory()
    try:
        build = prepare(cache, options.target, not options.no_build)
    except SystemExit as end:
        if end.code == SKIPPED:
            return skip("the machines' tree cannot be made here (above)", options.results)
        raise
    if options.action == "prepare":
        return 0
    tree_lock = open(cache / "tree.lock", "a")  # the tree stays as it is while a machine runs on it
    fcntl.flock(tree_lock, fcntl.LOCK_SH)
    if options.action == "test":
        return scenarios.run(cache, build, options.words, options.results)
    interactive = options.action == "shell"
    command = ["shell"] if interactive else options.words
    pmem = ("1G",)
    if options.action == "compare":
        pmem = ("1G", "512M")  # the second for the kernel's server
        options.seconds = max(options.seconds, 1800)
        command = ["bash", "-c", "/source/tests/vm/guest/prepare.sh && exec /source/tests/vm/guest/compare.py " +
                   " ".join(options.words)]
    with Machine(cache, command, build=build, out=options.out, accelerator=accelerator(cache), cpus=options.cpus,
                 memory=options.memory, pmem=pmem, interactive=interactive) as machine:
        return machine.wait(86400 if interactive else options.seconds)


if __name__ == "__main__":
    sys.exit(main())
