#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several mounts over the same few files and names, each operation with the moments of its call and its return: is the history
one that the mode of the mounts allows (docs: pnfsrdma-fuse(8), CONSISTENCY)? The kernel is made to forget what it knows, again
and again. And the judges themselves: they find each fault that is planted.

usage: consistency_test.py BIN_DIRECTORY [--seconds N] [--mounts N] [--seed N] [--mode close-to-open|noac|none]
"""
import argparse
import fcntl
import json
import multiprocessing
import os
import pathlib
import random
import sys
import time
import unittest

import cluster
from consistency import (NOTHING, Names, Operation, Register, Violation, around, check_increments, check_linearizable,
                         check_regular, registers_of_names)

LARGE = 1 << 20  # read and written by layouts; the other one through the server
DATA = {"small": 0, "large": LARGE // 2}  # where each has its value
SIZES = ("length",)
NAMES = ("one", "two", "three", "four")
COUNTER = "counter"
# How long each mode may show what was so before; `look`: names that are there, that are not.
MARGIN = 0.5  # of a call on a busy machine
ALL = "flush_after=1,layoutstats_timer=0,"
MODES = {
    "close-to-open": {"options": ALL + "acregmin=1,acregmax=2,acdirmin=2,acdirmax=4", "found": 2 + MARGIN, "absent": 1 + MARGIN},
    "noac": {"options": ALL + "noac"},
    "none": {"options": ALL + "cache=none"},
}
KINDS = {"write": 4, "read": 6, "resize": 2, "size": 4, "count": 3, "create": 3, "unlink": 2, "rename": 2, "look": 8}


class Worker:
    """A process that works through one mount, and notes what it did."""
    def __init__(self, number, mode, path, notes, seed):
        self.number, self.mode, self.path = number, mode, pathlib.Path(path)
        self.random = random.Random(f"{seed} {number}")
        self.notes = open(notes, "w", encoding="ascii")
        self.made = 0

    def run(self, until):
        while time.monotonic() < until:
            kind, = self.random.choices(list(KINDS), KINDS.values())
            getattr(self, kind)()
        self.notes.close()

    def unique(self):
        self.made += 1
        return self.made * 64 + self.number + 1

    def note(self, key, what, value, call, more=None):
        print(json.dumps([self.number, key, what, value, call, time.monotonic(), more]), file=self.notes)

    def write(self):
        key, place = self.random.choice(list(DATA.items()))
        value = self.unique()
        call = time.monotonic()
        descriptor = os.open(self.path / key, os.O_WRONLY)
        os.pwrite(descriptor, value.to_bytes(8, "little"), place)
        if self.random.random() < 0.3:
            os.fsync(descriptor)
        os.close(descriptor)
        self.note(key, "write", value, call)

    def read(self):
        key, place = self.random.choice(list(DATA.items()))
        call = time.monotonic()
        descriptor = os.open(self.path / key, os.O_RDONLY)
        value = int.from_bytes(os.pread(descriptor, 8, place), "little")
        os.close(descriptor)
        self.note(key, "read", value, call)

    def resize(self):
        key, value = self.random.choice(SIZES), self.unique()
        call = time.monotonic()
        os.truncate(self.path / key, value)
        self.note(key, "write", value, call)

    def size(self):
        key = self.random.choice(SIZES)
        call = time.monotonic()
        if self.mode == "close-to-open":
            descriptor = os.open(self.path / key, os.O_RDONLY)
            value = os.fstat(descriptor).st_size
            os.close(descriptor)
        else:
            value = os.stat(self.path / key).st_size
        self.note(key, "read", value, call)

    def count(self):
        with open(self.path / COUNTER, "r+b", buffering=0) as file:
            call = time.monotonic()
            fcntl.lockf(file, fcntl.LOCK_EX)
            value = int.from_bytes(file.read(8), "little")
            file.seek(0)
            file.write((value + 1).to_bytes(8, "little"))
            fcntl.lockf(file, fcntl.LOCK_UN)
            self.note(COUNTER, "increment", value, call)

    def on_name(self, what, work, more=None):
        name = self.random.choice([name for name in NAMES if name != more])
        call = time.monotonic()
        try:
            value = work(self.path / "names" / name)
        except FileNotFoundError:
            value = NOTHING if what == "look" else "ENOENT"
        except FileExistsError:
            value = "EEXIST"
        self.note(name, what, value, call, more)

    def create(self):
        def make(path):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            try:
                return os.fstat(descriptor).st_ino
            finally:
                os.close(descriptor)
        self.on_name("create", make)

    def unlink(self):
        self.on_name("unlink", os.unlink)

    def rename(self):
        to = self.random.choice(NAMES)
        self.on_name("rename", lambda path: os.rename(path, self.path / "names" / to), to)

    def look(self):
        self.on_name("look", lambda path: os.stat(path).st_ino)


def prepare(path):
    for key in DATA:
        (path / key).write_bytes(bytes(LARGE if key == "large" else 8))
    for key in SIZES:
        (path / key).touch()
    (path / COUNTER).write_bytes(bytes(8))
    (path / "names").mkdir()


def run(bin_directory, mode, mounts, seconds, seed):
    """The operations that were done."""
    with cluster.Cluster(bin_directory, pool_size="1G") as servers:
        servers.start_all()
        mounted = [servers.mount(MODES[mode]["options"], name=f"mount{number}") for number in range(mounts)]
        prepare(mounted[0].path)
        for mount in mounted:
            cluster.wait_until((mount / "names").exists, 10, "all see what was prepared")
        time.sleep(MODES[mode].get("found", 0))
        notes = [servers.home / f"notes.{number}" for number in range(2 * mounts)]
        until = time.monotonic() + seconds
        processes = [multiprocessing.Process(target=lambda number=number: Worker(
            number, mode, mounted[number % mounts].path, notes[number], seed).run(until)) for number in range(2 * mounts)]
        for process in processes:
            process.start()
        while time.monotonic() < until:
            time.sleep(0.7)
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("2", encoding="ascii")
        for process in processes:
            process.join(60)
        failed = [process.name for process in processes if process.exitcode != 0]
        if failed:
            raise RuntimeError(f"of the workers failed: {failed}")
        operations = [Operation(*json.loads(line)) for note in notes for line in note.read_text(encoding="ascii").splitlines()]
        for mount in mounted:
            mount.unmount()
    return operations


def of_keys(operations, keys):
    return [operation for operation in operations if operation.key in keys]


def judge(operations, mode):
    """A Violation says what the mode does not allow."""
    names = of_keys(operations, NAMES)
    check_increments(of_keys(operations, (COUNTER,)))
    if mode == "close-to-open":
        check_regular(of_keys(operations, (*DATA, *SIZES)), 0)
        done = [operation for operation in names if operation.what != "look" and operation.value not in ("ENOENT", "EEXIST")]
        check_linearizable(done, Names(NAMES), (NOTHING,) * len(NAMES))
        limits = MODES[mode]
        check_regular(registers_of_names(names), False, lambda read: limits["found" if read.value else "absent"])
        return
    check_linearizable(names, Names(NAMES), (NOTHING,) * len(NAMES))
    for key in (*SIZES, *(DATA if mode == "none" else ())):
        check_linearizable(of_keys(operations, (key,)), Register, (0,))
    check_regular(of_keys(operations, DATA), 0)


def plant(operations, mode, seed):
    """The same history with one fault each: (what, operations)."""
    draw = random.Random(seed)

    def with_other(old, new):
        return [new if operation is old else operation for operation in operations]

    def other(old, **changes):
        return with_other(old, Operation(**{**old.__dict__, **changes}))
    increments = of_keys(operations, (COUNTER,))
    first, second = draw.sample(increments, 2)
    yield "an increment is lost", other(first, value=second.value)
    for key in DATA:
        reads = [operation for operation in of_keys(operations, (key,)) if operation.what == "read"]
        late = max(reads, key=lambda read: read.call)
        yield f"{key} is read as it was in the beginning", other(late, value=0)
        yield f"{key} is read as nobody wrote it", other(draw.choice(reads), value=63)
    looks = sorted((operation for operation in of_keys(operations, NAMES) if operation.what == "look" and operation.value),
                   key=lambda look: look.call)
    if mode != "close-to-open":
        yield "a name is found that leads to what is gone", other(looks[-1], value=looks[0].value)
    end = max(operation.end for operation in operations)
    gone = [Operation(999, NAMES[0], what, value, end + 100 * number, end + 100 * number + 1)
            for number, (what, value) in enumerate((("create", 1), ("unlink", NOTHING), ("look", 1)), 1)]
    yield "a name is seen long after it was removed", [o for o in operations if o.key not in NAMES] + gone


def check_mode(arguments, mode, seconds):
    operations = run(arguments.bin, mode, arguments.mounts, seconds, arguments.seed)
    counts = {kind: sum(operation.what == kind for operation in operations)
              for kind in ("write", "read", "increment", "create", "unlink", "rename", "look")}
    print(f"{mode}: {len(operations)} operations in {seconds:.0f} s, seed {arguments.seed}: {counts}")
    for kind, count in counts.items():
        if count == 0:
            raise RuntimeError(f"{mode}: not one {kind}")
    try:
        judge(operations, mode)
    except Violation as violation:
        if violation.at:
            print(f"{mode}: process N works through mount N % {arguments.mounts}\n{around(operations, violation.at)}")
        raise
    for what, faulty in plant(operations, mode, arguments.seed):
        try:
            judge(faulty, mode)
        except Violation:
            continue
        raise RuntimeError(f"{mode}: not found in the history: {what}")


class Judges(unittest.TestCase):
    """Small histories of which it is known what is wrong."""
    @staticmethod
    def history(*operations):
        return [Operation(process, "x", what, value, call, end) for process, what, value, call, end in operations]

    def refused(self, check, *arguments):
        with self.assertRaises(Violation):
            check(*arguments)

    def test_a_regular_register(self):
        both = ((1, "write", 1, 0, 1), (1, "write", 2, 2, 4))
        for read in ((2, "read", 0, 0, 5), (2, "read", 1, 3, 5), (2, "read", 2, 3, 5), (2, "read", 2, 5, 6)):
            check_regular(self.history(*both, read), 0)
        for read in ((2, "read", 0, 1.5, 5), (2, "read", 1, 5, 6), (2, "read", 2, 0, 1.5), (2, "read", 3, 0, 9)):
            self.refused(check_regular, self.history(*both, read), 0)
        check_regular(self.history(*both, (2, "read", 1, 5, 6)), 0, lambda read: 1.5)
        self.refused(check_regular, self.history(*both, (2, "read", 1, 6, 7)), 0, lambda read: 1.5)
        # Two that go on at once may be seen in any order, and by two readers in two.
        beside = ((1, "write", 1, 0, 9), (2, "write", 2, 0, 9), (3, "read", 2, 1, 2), (3, "read", 1, 3, 4), (3, "read", 2, 5, 6))
        check_regular(self.history(*beside), 0)
        self.refused(check_linearizable, self.history(*beside), Register, (0,))

    def test_an_order_of_all(self):
        check_linearizable(self.history((1, "write", 1, 0, 5), (2, "read", 0, 1, 2), (2, "read", 1, 3, 4)), Register, (0,))
        self.refused(check_linearizable, self.history((1, "write", 1, 0, 5), (2, "read", 1, 1, 2), (2, "read", 0, 3, 4)),
                     Register, (0,))

    def test_names(self):
        names = Names(("a", "b"))
        empty = (NOTHING, NOTHING)

        def history(*operations):
            return [Operation(process, key, what, value, call, call + 1, more) for process, key, what, value, call, more in operations]
        made = ((1, "a", "create", 7, 0, None), (2, "a", "rename", None, 2, "b"))
        check_linearizable(history(*made, (1, "b", "look", 7, 4, None), (1, "a", "unlink", "ENOENT", 6, None)), names, empty)
        check_linearizable(history(*made, (1, "a", "look", 7, 2.5, None)), names, empty)
        self.refused(check_linearizable, history(*made, (1, "a", "look", 7, 4, None)), names, empty)
        self.refused(check_linearizable, history(*made, (1, "b", "create", 8, 4, None)), names, empty)
        self.refused(check_linearizable, history(*made, (1, "b", "unlink", "ENOENT", 4, None)), names, empty)
        twice = ((1, "b", "create", 8, 0, None), (2, "b", "rename", None, 2, "a"), (1, "b", "look", NOTHING, 4, None))
        check_linearizable(history(*twice, (3, "b", "rename", None, 6, "a")), names, empty)
        self.refused(check_linearizable, history(*twice, (3, "b", "unlink", None, 6, None)), names, empty)
        stale = registers_of_names(history((1, "a", "create", 7, 0, None), (2, "a", "unlink", None, 2, None), (1, "a", "look", 7, 4, None)))
        check_regular(stale, False, lambda read: 2)
        self.refused(check_regular, stale, False)

    def test_increments(self):
        check_increments(self.history((1, "increment", 0, 0, 2), (2, "increment", 1, 1, 3)))
        self.refused(check_increments, self.history((1, "increment", 0, 0, 2), (2, "increment", 0, 1, 3)))
        self.refused(check_increments, self.history((1, "increment", 1, 0, 1), (2, "increment", 0, 2, 3)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--seconds", type=float, default=15, help="of all modes together")
    parser.add_argument("--mounts", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--mode", choices=tuple(MODES))
    arguments = parser.parse_args()
    judged = unittest.main(argv=[sys.argv[0]], exit=False)
    if not judged.result.wasSuccessful():
        return 1
    modes = [arguments.mode] if arguments.mode else list(MODES)
    for mode in modes:
        check_mode(arguments, mode, arguments.seconds / len(modes))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
