#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An array of doubles on remote persistent memory: stored into, saved and flushed, and there in the next run.

usage: array.py SOURCE PATH      each run adds 1 to every element, and tells their sum

With NumPy the array is one of its own, on the map's memory and without a copy; without it, a memoryview.
"""
import os
import sys

import pnfsrdma

try:
    import numpy
except ImportError:
    numpy = None

COUNT = 100_000


def add_one(memory):
    """Returns the sum."""
    if numpy is not None:
        values = numpy.frombuffer(memory, dtype="f8")
        values += 1
        return values.sum()
    values = memory.cast("d")
    for i in range(COUNT):
        values[i] += 1
    return sum(values)


def main():
    if len(sys.argv) != 3:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    with pnfsrdma.connect(sys.argv[1]) as client, client.open(sys.argv[2], os.O_RDWR | os.O_CREAT) as file:
        with file.map(0, 8 * COUNT) as image:
            total = add_one(image.memory)
            image.sync()  # all of it: everything was stored to
        file.fsync()
    print(f"{total:.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
