#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a clone costs, and the first write behind it: times through a mount.

usage: clone_bench.py BIN_DIRECTORY [--extents N,N,...] [--writes N] [--rounds N]
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


def overwrite(path, writes, data=b"y"):
    """`data` at the beginning of each of so many blocks; durable. Microseconds, the median."""
    times = []
    with open(path, "rb+", buffering=0) as file:
        for number in range(writes):
            begin = time.monotonic()
            os.pwrite(file.fileno(), data, number * BLOCK)
            os.fdatasync(file.fileno())
            times.append((time.monotonic() - begin) * 1e6)
    return statistics.median(times)


def whole_blocks(mount, writes, rounds):
    """Of a clone, which the brick copies first, and of a new file: all that a client would save that wrote to new memory."""
    data = os.urandom(BLOCK)
    shared, new, alone = [], [], []
    for number in range(rounds):
        clone(mount / "large", mount / "target")
        shared.append(overwrite(mount / "target", writes, data))
        alone.append(overwrite(mount / "target", writes, data))
        (mount / "target").unlink()
        (mount / "new").touch()
        new.append(overwrite(mount / "new", writes, data))
        (mount / "new").unlink()
    return [statistics.median(times) for times in (shared, new, alone)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin")
    parser.add_argument("--extents", default="1,1000,10000,16000")
    parser.add_argument("--writes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3, help="of whole blocks")
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
        before = overwrite(source, arguments.writes)
        clone(source, mount / "target")
        first = overwrite(mount / "target", arguments.writes)
        next_one = overwrite(mount / "target", arguments.writes)
        (mount / "target").unlink()
        shared, new, alone = whole_blocks(mount, arguments.writes, arguments.rounds)
        print(f"\n{'a durable write, of one byte unless said, us, median':<40} {'':>10}")
        for name, value in (("of memory that is the file's alone", before),
                            ("the first in a block of 2 MiB behind a clone", first),
                            ("the next one there", next_one),
                            ("2 MiB, a whole block, the first behind a clone", shared),
                            ("2 MiB of new memory", new),
                            ("2 MiB of memory that is the file's alone", alone)):
            print(f"  {name:<46} {value:>10.0f}")
        mount.unmount()


if __name__ == "__main__":
    main()
