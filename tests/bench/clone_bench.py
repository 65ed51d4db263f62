#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a clone costs, and the first write behind it: times through a mount, and the longest turn of the MDS's loop.

usage: clone_bench.py BIN_DIRECTORY [--extents N,N,...] [--writes N]
"""
import argparse
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
from cluster import Cluster  # noqa: E402

PAGE = 4096
BLOCK = 2 << 20
STEP = 32 << 10  # a sparse write takes 16 KiB


def milliseconds(function):
    begin = time.monotonic()
    function()
    return (time.monotonic() - begin) * 1e3


def clone(source, target):
    with open(source, "rb") as reading, open(target, "wb") as writing:
        count = os.fstat(reading.fileno()).st_size
        done = os.copy_file_range(reading.fileno(), writing.fileno(), count)
        if done != count:
            raise SystemExit(f"{done} of {count} bytes were cloned")


def make_sparse(path, extents):
    with open(path, "wb", buffering=0) as file:
        for number in range(extents):
            os.pwrite(file.fileno(), b"x", number * STEP)


def overwrite(path, writes, step):
    """One byte in each of so many places; durable. Microseconds, the median."""
    times = []
    with open(path, "rb+", buffering=0) as file:
        for number in range(writes):
            begin = time.monotonic()
            os.pwrite(file.fileno(), b"y", number * step)
            os.fdatasync(file.fileno())
            times.append((time.monotonic() - begin) * 1e6)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin")
    parser.add_argument("--extents", default="1,1000,10000,16000")
    parser.add_argument("--writes", type=int, default=100)
    arguments = parser.parse_args()
    with Cluster(arguments.bin, pool_size="4G") as cluster:
        cluster.start_all()
        mount = cluster.mount("actimeo=0")
        print(f"{'a file of so many extents':<40} {'clone, ms':>10} {'clone of the clone':>20} {'removed, ms':>12}")
        for extents in map(int, arguments.extents.split(",")):
            source = mount / f"source-{extents}"
            make_sparse(source, extents)
            times = [milliseconds(lambda: clone(source, mount / "clone")),
                     milliseconds(lambda: clone(mount / "clone", mount / "again")),
                     milliseconds(lambda: (mount / "clone").unlink())]
            print(f"{extents:<40} {times[0]:>10.1f} {times[1]:>20.1f} {times[2]:>12.1f}", flush=True)
            (mount / "again").unlink()
            source.unlink()
        source = mount / "large"
        size = arguments.writes * BLOCK
        with open(source, "wb") as file:
            for _ in range(size // BLOCK):
                file.write(os.urandom(BLOCK))
        before = overwrite(source, arguments.writes, BLOCK)
        clone(source, mount / "target")
        first = overwrite(mount / "target", arguments.writes, BLOCK)
        next_one = overwrite(mount / "target", arguments.writes, BLOCK)
        print(f"\n{'a durable write of one byte, us, median':<40} {'':>10}")
        for name, value in (("of memory that is the file's alone", before),
                            ("the first in a block of 2 MiB behind a clone", first),
                            ("the next one there", next_one)):
            print(f"  {name:<46} {value:>10.0f}")
        mount.unmount()


if __name__ == "__main__":
    main()
