#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of the mount beside each other: both are mounted at once, on one CPU, and take turns of a tenth of a second.

A machine whose speed drifts changes both sides of a pair alike: the median of the pairs' ratios finds differences of a
percent or two where whole runs in turn differ by tens. Needs root and /dev/fuse.
"""
import argparse
import mmap
import os
import pathlib
import random
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from cluster import Cluster  # noqa: E402

MIB = 1 << 20
FILE = 64 * MIB
ROWS = [("4 KiB read", 4096, False, False), ("4 KiB write", 4096, True, False), ("4 KiB write + fsync", 4096, True, True),
        ("1 MiB read", MIB, False, False), ("1 MiB write", MIB, True, False)]


def rate(file, memory, writes, syncs, seconds):
    """Operations a second, O_DIRECT, anywhere in the file."""
    count, began = 0, time.monotonic()
    while (taken := time.monotonic() - began) < seconds:
        offset = random.randrange(FILE // len(memory)) * len(memory)
        done = os.pwritev(file, [memory], offset) if writes else os.preadv(file, [memory], offset)
        if done != len(memory):
            raise OSError(f"{done} of {len(memory)} bytes at {offset}")
        if syncs:
            os.fsync(file)
        count += 1
    return count / taken


def open_file(mount):
    file = os.open(mount / "file", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    memory = mmap.mmap(-1, MIB)
    for offset in range(0, FILE, MIB):
        os.pwritev(file, [memory], offset)
    os.fsync(file)
    return file


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", help="a folder with programs")
    parser.add_argument("after", help="another one")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a turn")
    parser.add_argument("--cpu", type=int, default=0, help="everything runs on this CPU")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {arguments.cpu})
    with Cluster(arguments.before, pool_size="256M") as before, Cluster(arguments.after, pool_size="256M") as after:
        mounts = [cluster.start_all().mount() for cluster in (before, after)]
        files = [open_file(mount) for mount in mounts]
        print(f"{arguments.pairs} pairs of {arguments.seconds} s: operations a second (medians), median of the pairs' ratios, its quartiles")
        for name, length, writes, syncs in ROWS:
            memory = mmap.mmap(-1, length)
            rates = ([], [])
            for pair in range(arguments.pairs):
                for side in ((0, 1), (1, 0))[pair % 2]:
                    rates[side].append(rate(files[side], memory, writes, syncs, arguments.seconds))
            ratios = statistics.quantiles([now / then for then, now in zip(*rates)], n=4)
            print(f"{name:20} {statistics.median(rates[0]):9,.0f} {statistics.median(rates[1]):9,.0f}   {ratios[1]:.3f} ({ratios[0]:.2f} to {ratios[2]:.2f})",
                  flush=True)
        for file in files:
            os.close(file)
        for mount in mounts:
            mount.unmount()


if __name__ == "__main__":
    sys.exit(main())
