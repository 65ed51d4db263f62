#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Anything that may happen to the bytes of a few files, by two mounts, beside a model that knows each byte.

Each operation is drawn from a seed and the number of the operation alone, so any part of a sequence can be done again. With
--shrink a sequence that fails is made shorter, as long as it fails, and printed.

usage: exerciser_test.py BIN_DIRECTORY [--seconds N] [--operations N] [--files N] [--seed N] [--shrink]
"""
import argparse
import ctypes
import dataclasses
import errno
import json
import mmap
import os
import random
import shutil
import subprocess
import sys
import time

import cluster

KIB = 1 << 10
MIB = 1 << 20
PAGE = 4096
BLOCK = 2 * MIB
SIZE_MAX = 3 * BLOCK
LENGTH_MAX = 300 * KIB
SNAPSHOTS_MAX = 4
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
LIST = ".snapshots"
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
# How often each is done, beside the others.
KINDS = {"write": 20, "append": 6, "truncate": 6, "punch": 6, "zero": 4, "zero_keep": 2, "allocate": 3, "allocate_keep": 2,
         "map": 8, "clone": 8, "copy": 6, "fsync": 3, "hold": 4, "release": 4, "read": 10, "read_then": 8, "read_all": 3,
         "take": 2, "remove": 1.5, "restore": 1.5, "clone_then": 2, "replace": 1, "restart": 0.05}


class Wrong(Exception):
    """What is not as the model says."""


@dataclasses.dataclass
class Operation:
    """Numbers from which, with the model as it is, follows what is done."""
    number: int
    kind: str
    mount: int
    other_mount: int
    file: int
    other_file: int
    offset: int
    length: int
    other_offset: int
    seed: int

    @staticmethod
    def drawn(seed, number, files):
        dice = random.Random(f"{seed} {number}")
        kind, = dice.choices(list(KINDS), KINDS.values())
        return Operation(number, kind, dice.randrange(2), dice.randrange(2), dice.randrange(files), dice.randrange(files),
                         Operation.place(dice), Operation.size(dice), Operation.place(dice), dice.randrange(1 << 32))

    @staticmethod
    def place(dice):
        """Often where something ends."""
        unit = dice.choice((1, 1, PAGE, PAGE, BLOCK))
        beside = dice.choice((0, 0, -1, 1, dice.randrange(-100, 100)))
        return min(SIZE_MAX, max(0, dice.randrange(SIZE_MAX // unit) * unit + beside))

    @staticmethod
    def size(dice):
        return dice.choice((1, dice.randrange(1, 100), PAGE, dice.randrange(1, 3 * PAGE), dice.randrange(1, LENGTH_MAX),
                            dice.randrange(1, LENGTH_MAX) // PAGE * PAGE or PAGE))


class Exerciser:
    """The files of one directory and what they should be."""

    def __init__(self, servers, mounts, files, name):
        self.cluster, self.mounts, self.name = servers, mounts, name
        (mounts[0] / name).mkdir()
        self.models = [bytearray() for _ in range(files)]
        for number in range(files):
            self.path(0, number).touch()
        self.then = {}  # of each snapshot, the files as they were
        self.held = {}  # by mount and file: an open descriptor
        self.done = {}  # how often each kind was

    def path(self, mount, file, snapshot=None):
        top = self.mounts[mount] / LIST / snapshot if snapshot else self.mounts[mount].path
        return top / self.name / f"file{file}"

    def command(self, *arguments):
        done = subprocess.run([str(self.cluster.bin / "pnfsrdma"), "--socket", f"{self.cluster.home}/console.sock", "--json", "--yes",
                               *map(str, arguments)], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise Wrong(f"{arguments}: {done.returncode} {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def close(self):
        for descriptor in self.held.values():
            os.close(descriptor)
        for snapshot in self.then:
            self.command("snapshot", "remove", snapshot)
        shutil.rmtree(self.mounts[0] / self.name)

    def run(self, operation):
        self.done[operation.kind] = self.done.get(operation.kind, 0) + 1
        getattr(self, operation.kind)(operation)
        self.look(operation.other_mount, operation.file, max(0, operation.offset - PAGE), operation.length + 2 * PAGE)

    # --- the model ---

    def store(self, file, offset, data):
        model = self.models[file]
        model.extend(bytes(max(0, offset + len(data) - len(model))))
        model[offset:offset + len(data)] = data

    @staticmethod
    def compare(what, found, expected):
        if found == expected:
            return
        at = next((i for i, (one, other) in enumerate(zip(found, expected)) if one != other), min(len(found), len(expected)))
        raise Wrong(f"{what}: {len(found)} bytes, not {len(expected)}; the first other one is {at}: "
                    f"{bytes(found[at:at + 8]).hex()}, not {bytes(expected[at:at + 8]).hex()}")

    def look(self, mount, file, offset, length, snapshot=None):
        expected = self.then[snapshot][file] if snapshot else self.models[file]
        with open(self.path(mount, file, snapshot), "rb", buffering=0) as reader:
            size = os.fstat(reader.fileno()).st_size
            if size != len(expected):
                raise Wrong(f"file{file} of {snapshot or 'now'} by mount {mount}: its size is {size}, not {len(expected)}")
            found = os.pread(reader.fileno(), length, offset)
        self.compare(f"file{file} of {snapshot or 'now'} by mount {mount}, {length} bytes at {offset}", found,
                     bytes(expected[offset:offset + length]))

    def look_at_all(self):
        for mount in range(2):
            for file, model in enumerate(self.models):
                self.look(mount, file, 0, len(model) + PAGE)
            for snapshot, files in self.then.items():
                for file, model in enumerate(files):
                    self.look(mount, file, 0, len(model) + PAGE, snapshot)

    def some_snapshot(self, operation):
        return sorted(self.then)[operation.seed % len(self.then)] if self.then else None

    # --- the operations ---

    def writable(self, operation, file=None):
        return open(self.path(operation.mount, operation.file if file is None else file), "rb+", buffering=0)

    def write(self, operation):
        data = random.Random(operation.seed).randbytes(operation.length)
        with self.writable(operation) as file:
            written = os.pwrite(file.fileno(), data, operation.offset)
            if written != len(data):
                raise Wrong(f"{written} bytes written, not {len(data)}")
            if operation.seed % 4 == 0:
                os.fdatasync(file.fileno())
        self.store(operation.file, operation.offset, data)

    def append(self, operation):
        if len(self.models[operation.file]) > SIZE_MAX:
            return
        data = random.Random(operation.seed).randbytes(operation.length)
        with open(self.path(operation.mount, operation.file), "ab", buffering=0) as file:
            file.write(data)
        self.store(operation.file, len(self.models[operation.file]), data)

    def truncate(self, operation):
        model = self.models[operation.file]
        os.truncate(self.path(operation.mount, operation.file), operation.offset)
        model.extend(bytes(max(0, operation.offset - len(model))))
        del model[operation.offset:]

    def fallocate(self, operation, mode):
        with self.writable(operation) as file:
            if LIBC.fallocate(file.fileno(), mode, operation.offset, operation.length) != 0:
                number = ctypes.get_errno()
                behind = operation.offset + operation.length > len(self.models[operation.file])
                # Behind its end a file keeps no memory.
                if mode & KEEP_SIZE and not mode & PUNCH_HOLE and behind and number == errno.EOPNOTSUPP:
                    return
                raise OSError(number, f"fallocate {mode}: {os.strerror(number)}")
        model = self.models[operation.file]
        if not mode & KEEP_SIZE:
            model.extend(bytes(max(0, operation.offset + operation.length - len(model))))
        end = min(len(model), operation.offset + operation.length)
        if mode & (PUNCH_HOLE | ZERO_RANGE) and operation.offset < end:
            model[operation.offset:end] = bytes(end - operation.offset)

    def punch(self, operation):
        self.fallocate(operation, PUNCH_HOLE | KEEP_SIZE)

    def zero(self, operation):
        self.fallocate(operation, ZERO_RANGE)

    def zero_keep(self, operation):
        self.fallocate(operation, ZERO_RANGE | KEEP_SIZE)

    def allocate(self, operation):
        self.fallocate(operation, 0)

    def allocate_keep(self, operation):
        self.fallocate(operation, KEEP_SIZE)

    def map(self, operation):
        size = len(self.models[operation.file])
        if size == 0:
            return
        start = operation.offset % size
        data = random.Random(operation.seed).randbytes(min(operation.length, size - start))
        with self.writable(operation) as file, mmap.mmap(file.fileno(), size) as mapped:
            mapped[start:start + len(data)] = data
            if operation.seed % 3 == 0:
                mapped[start:start + len(data)] = data[::-1]
                data = data[::-1]
            mapped.flush()
        self.store(operation.file, start, data)

    def copy_range(self, operation, source_path, source, unit):
        """Of a file, or of one in a snapshot, whose bytes `source` are."""
        start, offset = operation.other_offset // unit * unit, operation.offset // unit * unit
        length = min(len(source) - start, max(unit, operation.length // unit * unit))
        if operation.seed % 5 == 0:
            start = offset = 0
            length = len(source)
        same = source_path == self.path(operation.mount, operation.file)
        if length <= 0 or (same and abs(start - offset) < length):
            return
        data = bytes(source[start:start + length])
        with open(source_path, "rb", buffering=0) as reader, self.writable(operation) as file:
            done = 0
            while done < length:
                count = os.copy_file_range(reader.fileno(), file.fileno(), length - done, start + done, offset + done)
                if count == 0:
                    raise Wrong(f"copy_file_range: the end after {done} of {length} bytes")
                done += count
        self.store(operation.file, offset, data)

    def clone(self, operation):
        self.copy_range(operation, self.path(operation.mount, operation.other_file), self.models[operation.other_file], PAGE)

    def copy(self, operation):
        self.copy_range(operation, self.path(operation.mount, operation.other_file), self.models[operation.other_file], 1)

    def clone_then(self, operation):
        if snapshot := self.some_snapshot(operation):
            self.copy_range(operation, self.path(operation.mount, operation.other_file, snapshot),
                            self.then[snapshot][operation.other_file], PAGE)

    def fsync(self, operation):
        with self.writable(operation) as file:
            os.fsync(file.fileno())

    def hold(self, operation):
        """Whoever has it open keeps what he has been given of it."""
        key = operation.mount, operation.file
        self.release(operation)
        self.held[key] = os.open(self.path(*key), os.O_RDWR)
        os.pread(self.held[key], PAGE, operation.offset)

    def release(self, operation):
        descriptor = self.held.pop((operation.mount, operation.file), None)
        if descriptor is not None:
            os.close(descriptor)

    def read(self, operation):
        self.look(operation.mount, operation.file, operation.offset, operation.length)

    def read_then(self, operation):
        if snapshot := self.some_snapshot(operation):
            length = SIZE_MAX * 2 if operation.seed % 3 == 0 else operation.length
            self.look(operation.mount, operation.file, 0 if operation.seed % 3 == 0 else operation.offset, length, snapshot)

    def read_all(self, operation):
        self.look(operation.mount, operation.file, 0, SIZE_MAX * 2)

    def take(self, operation):
        if len(self.then) >= SNAPSHOTS_MAX:
            return self.remove(operation)
        name = f"{self.name}-{operation.number}"
        self.command("snapshot", "create", name)
        self.then[name] = [bytes(model) for model in self.models]
        return None

    def remove(self, operation):
        if snapshot := self.some_snapshot(operation):
            self.command("snapshot", "remove", snapshot)
            del self.then[snapshot]

    def restore(self, operation):
        if snapshot := self.some_snapshot(operation):
            self.command("restore", self.path(operation.mount, operation.file, snapshot))
            self.models[operation.file] = bytearray(self.then[snapshot][operation.file])

    def replace(self, operation):
        """A new file under the name, while somebody may have the old one open."""
        data = random.Random(operation.seed).randbytes(operation.length)
        made = self.mounts[operation.mount] / self.name / "new"
        made.write_bytes(data)
        made.rename(self.path(operation.mount, operation.file))
        self.models[operation.file] = bytearray(data)

    def restart(self, _):
        self.cluster.kill("mds")
        self.cluster.start_mds()


def fails(servers, mounts, options, operations, attempt):
    """What goes wrong when these are done in a new directory; None: nothing."""
    exerciser = Exerciser(servers, mounts, options.files, f"attempt{attempt}")
    try:
        for operation in operations:
            exerciser.run(operation)
        exerciser.look_at_all()
        return None
    except (Wrong, OSError) as error:
        return error
    finally:
        exerciser.close()


def shrink(servers, mounts, options, operations):
    """Leaves out what is not needed to fail."""
    attempt, step = 0, max(1, len(operations) // 2)
    while True:
        at = 0
        while at < len(operations):
            fewer = operations[:at] + operations[at + step:]
            attempt += 1
            if fails(servers, mounts, options, fewer, attempt):
                operations = fewer
            else:
                at += step
        if step == 1:
            return operations
        step = max(1, step // 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--operations", type=int, default=0, help="so many, however long they take")
    parser.add_argument("--files", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--shrink", action="store_true")
    options = parser.parse_args()
    cluster.require_mounts()
    print(f"seed {options.seed}, {options.files} files", flush=True)
    with cluster.Cluster(options.bin, pool_size="1G", durability="process").start_all() as servers:
        mounts = [servers.mount("actimeo=0", name=name) for name in "ab"]
        exerciser = Exerciser(servers, mounts, options.files, "files")
        operations, end = [], time.monotonic() + options.seconds
        try:
            while len(operations) < options.operations if options.operations else time.monotonic() < end:
                operations.append(Operation.drawn(options.seed, len(operations), options.files))
                exerciser.run(operations[-1])
                if len(operations) % 200 == 0:
                    exerciser.look_at_all()
                if len(operations) % 10_000 == 0:
                    print(f"{len(operations)} operations", flush=True)
            exerciser.look_at_all()
        except (Wrong, OSError) as error:
            print(f"FAILED: seed {options.seed}, operation {len(operations) - 1}: {operations[-1]}\n{error!r}", flush=True)
            if options.shrink:
                for operation in shrink(servers, mounts, options, operations):
                    print(operation, flush=True)
            sys.exit(1)
        finally:
            exerciser.close()
        print(f"{len(operations)} operations: {exerciser.done}", flush=True)
        for mount in mounts:
            mount.unmount()
        servers.kill("mds")
        checked = servers.run("mdsd", "--config", str(servers.home / "mds.json"), "--check", check=False)
        if checked.returncode != 0:
            sys.exit(f"FAILED: seed {options.seed}: the metadata are not in order\n{checked.stdout}{checked.stderr}")


if __name__ == "__main__":
    main()
