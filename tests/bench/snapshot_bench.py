#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a snapshot costs: the time until it is taken, how long others wait for it, and the first write behind it.

usage: snapshot_bench.py BIN_DIRECTORY [--files N,N,...] [--snapshots N] [--writes N]
"""
import argparse
import os
import pathlib
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from clone_bench import BLOCK, milliseconds, overwrite  # noqa: E402
from cluster import Cluster  # noqa: E402
from console_client import Console  # noqa: E402


class Writer(threading.Thread):
    """Overwrites a page of a file again and again, and keeps the longest time that one took."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.going, self.longest, self.writes = path, True, 0.0, 0

    def run(self):
        with open(self.path, "rb+", buffering=0) as file:
            while self.going:
                self.longest = max(self.longest, milliseconds(lambda: self.write(file.fileno())))
                self.writes += 1

    def write(self, descriptor):
        os.pwrite(descriptor, bytes(4096), 4096 * (self.writes % 512))
        os.fdatasync(descriptor)

    def stop(self):
        self.going = False
        self.join()
        return self.longest


def fill(directory, count):
    directory.mkdir()
    for number in range(count):
        (directory / f"file{number}").touch()


def take(console, name):
    def post():
        answer = console.request("POST", "/snapshots", {"name": name})
        if answer.status != 201:
            raise SystemExit(f"no snapshot: {answer.status} {answer.json}")
    return milliseconds(post)


def with_a_writer(cluster, console, path, name):
    """The time until it is taken, and the longest write meanwhile."""
    writer = Writer(path)
    writer.start()
    time.sleep(0.5)
    taken = take(console, name)
    time.sleep(0.5)
    return taken, writer.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin")
    parser.add_argument("--files", default="0,10000,20000")
    parser.add_argument("--snapshots", type=int, default=10, help="of each kind")
    parser.add_argument("--writes", type=int, default=100)
    arguments = parser.parse_args()
    with Cluster(arguments.bin, pool_size="4G") as cluster:
        cluster.start_all()
        console = Console(cluster.home / "console.sock")
        mount = cluster.mount("actimeo=0")
        large = mount / "large"
        large.write_bytes(os.urandom(BLOCK) * arguments.writes)
        files, number = 0, 0
        print(f"{'so many files':<16} {'taken, ms, median':>20} {'the worst':>12} {'beside a writer':>18} {'his longest write':>20}")
        for more in map(int, arguments.files.split(",")):
            fill(mount / f"directory{more}", more)
            files += more
            idle, busy = [], []
            for _ in range(arguments.snapshots):
                number += 1
                idle.append(take(console, f"idle{number}"))
                busy.append(with_a_writer(cluster, console, large, f"busy{number}"))
            print(f"{files:<16} {statistics.median(idle):>20.1f} {max(idle):>12.1f} "
                  f"{statistics.median(taken for taken, _ in busy):>18.1f} {max(longest for _, longest in busy):>20.1f}",
                  flush=True)
        before = overwrite(large, arguments.writes, BLOCK)
        before = overwrite(large, arguments.writes, BLOCK)
        take(console, "last")
        first = overwrite(large, arguments.writes, BLOCK)
        next_one = overwrite(large, arguments.writes, BLOCK)
        print("\na durable write of one byte, us, median")
        for name, value in (("of memory that is the file's alone", before),
                            ("the first in a block of 2 MiB behind a snapshot", first),
                            ("the next one there", next_one)):
            print(f"  {name:<50} {value:>10.0f}")
        mount.unmount()


if __name__ == "__main__":
    main()
