#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The write workload of the crash tests, and what must be true afterwards.

Each worker owns its files. Every 4 KiB grain it writes names the worker, the file, the grain and a generation, so that a
reader can tell old from new and own from foreign. What is begun, and what fsync (or a namespace call) has acknowledged,
goes into a journal outside the mount. `Model` replays it: per file, what may be there and what must.

usage: workload.py MOUNT JOURNAL WORKER SEED      (runs until an error ends it or it is killed)
"""
import errno
import json
import mmap
import os
import random
import struct
import sys
import time

GRAIN = 4096
FILES = 6
HEADER = struct.Struct(">8sIIQQ")
MAGIC = b"PNFSRDMA"
ZERO_GRAIN = bytes(GRAIN)
ZEROS = 0  # the "generation" of a grain that was never written, or cut off


def grain(worker, file, index, generation):
    return HEADER.pack(MAGIC, worker, file, index, generation) * (GRAIN // HEADER.size)


class FileModel:
    """What one file may hold. An operation that was begun and not acknowledged may or may not have happened."""

    def __init__(self):
        self.may_exist, self.must_exist = False, False
        self.grains = {}  # index -> generations that may be read there; others: zeros only
        self.size_min, self.size_max = 0, 0

    def may(self, index):
        return self.grains.get(index, {ZEROS})

    def begin_write(self, start, count, generation):
        self.may_exist = True
        for i in range(start, start + count):
            self.grains[i] = self.may(i) | {generation}
        self.size_max = max(self.size_max, (start + count) * GRAIN)

    def end_write(self, start, count, generation):
        self.may_exist = self.must_exist = True
        for i in range(start, start + count):
            self.grains[i] = {generation}
        self.size_min = max(self.size_min, (start + count) * GRAIN)
        self.size_max = max(self.size_max, self.size_min)

    def begin_cut(self, keep):
        for i in [i for i in self.grains if i >= keep]:
            self.grains[i].add(ZEROS)
        self.size_min = min(self.size_min, keep * GRAIN)
        self.size_max = max(self.size_max, keep * GRAIN)

    def end_cut(self, keep):
        self.may_exist = self.must_exist = True
        self.grains = {i: g for i, g in self.grains.items() if i < keep}
        self.size_min = self.size_max = keep * GRAIN

    def begin_remove(self):
        self.must_exist = False
        self.begin_cut(0)

    def end_remove(self):
        self.__init__()

    def begin_replace(self, count, generation):
        # From now on the old file or the new one: a mixture of both is only found by its grains.
        existed, size_max = self.must_exist, self.size_max
        self.begin_cut(0)
        self.begin_write(0, count, generation)
        self.must_exist, self.size_max = existed, max(size_max, count * GRAIN)

    def end_replace(self, count, generation):
        self.end_remove()
        self.end_write(0, count, generation)

    def problems_of(self, worker, file, index, data):
        """`data`: what was read there, a whole grain or, at the end, its front."""
        found = set()
        if data == ZERO_GRAIN[:len(data)]:
            found = {ZEROS}
        else:
            for at in range(0, len(data), HEADER.size):
                record = data[at:at + HEADER.size]
                if record == ZERO_GRAIN[:len(record)]:
                    found.add(ZEROS)
                    continue
                magic, its_worker, its_file, its_index, generation = HEADER.unpack(record.ljust(HEADER.size))
                if magic != MAGIC:
                    return [f"not ours at byte {at}: {record.hex()}"]
                if (its_worker, its_file, its_index) != (worker, file, index):
                    return [f"holds grain {its_index} of w{its_worker}.f{its_file}"]
                found.add(generation)
        # A write that was not acknowledged may be there in part, but only between what may be there.
        if not found <= self.may(index):
            return [f"holds {sorted(found)}, may hold {sorted(self.may(index))}"]
        return []


class Model:
    def __init__(self):
        self.files = [FileModel() for _ in range(FILES)]

    def apply(self, entry):
        getattr(self.files[entry["file"]], entry["what"])(*entry["values"])


class Worker:
    def __init__(self, mount, journal, worker, seed):
        self.mount, self.worker, self.chance = mount, worker, random.Random(seed * 16 + worker)
        self.model = replay(journal)
        self.journal = open(journal, "a", buffering=1)
        self.generation = seed << 20
        self.memory = mmap.mmap(-1, 256 * GRAIN)  # aligned, as O_DIRECT wants

    def note(self, file, what, *values):
        entry = {"file": file, "what": what, "values": values}
        self.journal.write(json.dumps(entry) + "\n")
        self.model.apply(entry)

    def path(self, file):
        return os.path.join(self.mount, f"w{self.worker}.f{file}")

    def put(self, path, file, start, count, flags):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o644)
        try:
            data = b"".join(grain(self.worker, file, start + i, self.generation) for i in range(count))
            written = 0
            while written < len(data):
                written += os.pwrite(fd, data[written:], start * GRAIN + written)
            (os.fsync if self.chance.random() < 0.5 else os.fdatasync)(fd)
        finally:
            os.close(fd)

    def write_and_sync(self, file):
        count = self.chance.choice([1, 1, 2, 4, 16, 64, 256])
        start = self.chance.randrange(1024) if self.chance.random() < 0.7 else 0
        self.generation += 1
        self.note(file, "begin_write", start, count, self.generation)
        self.put(self.path(file), file, start, count, 0)
        self.note(file, "end_write", start, count, self.generation)

    def replace(self, file):
        """The way of careful programs: a new file, fsync, rename over the old one."""
        count = self.chance.choice([1, 4, 64])
        self.generation += 1
        new = self.path(file) + ".new"
        self.put(new, file, 0, count, os.O_TRUNC)
        self.note(file, "begin_replace", count, self.generation)
        try:
            os.rename(new, self.path(file))
        except FileNotFoundError:
            return  # the first answer died with the server, and the call was repeated: the new file is there, most likely
        self.note(file, "end_replace", count, self.generation)

    def remove(self, file):
        self.note(file, "begin_remove")
        try:
            os.unlink(self.path(file))
        except FileNotFoundError:
            pass  # also when the first answer died with the server, and the call was repeated
        self.note(file, "end_remove")

    def truncate(self, file):
        keep = self.chance.randrange(64)
        if not self.model.files[file].may_exist:
            return
        self.note(file, "begin_cut", keep)
        try:
            os.truncate(self.path(file), keep * GRAIN)
        except FileNotFoundError:
            if self.model.files[file].must_exist:
                raise AssertionError(f"{self.path(file)}: synced, and gone")
            self.note(file, "end_remove")
            return
        self.note(file, "end_cut", keep)

    def read(self, file):
        """Past the page cache; what is read must be what may be there, in the middle of a crash too."""
        start = self.chance.randrange(1024) if self.chance.random() < 0.5 else 0
        try:
            fd = os.open(self.path(file), os.O_RDONLY | os.O_DIRECT)
        except FileNotFoundError:
            if self.model.files[file].must_exist:
                raise AssertionError(f"{self.path(file)}: synced, and gone")
            return
        try:
            length = os.preadv(fd, [self.memory], start * GRAIN)
        finally:
            os.close(fd)
        for at in range(0, length, GRAIN):
            index = start + at // GRAIN
            data = self.memory[at:min(at + GRAIN, length)]
            for problem in self.model.files[file].problems_of(self.worker, file, index, data):
                raise AssertionError(f"{self.path(file)} grain {index}: {problem}")

    def step(self):
        file = self.chance.randrange(FILES)
        steps = [(0.65, self.write_and_sync), (0.75, self.read), (0.82, self.replace), (0.92, self.truncate),
                 (1.00, self.remove)]
        what = self.chance.random()
        self.doing = next(step for limit, step in steps if what < limit)
        self.doing(file)

    def run(self):
        while True:
            start = time.monotonic()
            try:
                self.step()
            except OSError as e:
                if e.errno in (errno.ENOTCONN, errno.ECONNABORTED, errno.ENODEV):
                    return  # the client was killed
                # EIO at a sync is honest after a crash: that write was not acknowledged.
                if e.errno != errno.EIO:
                    raise
                self.log(f"EIO: {e}")
            if (seconds := time.monotonic() - start) > 2:
                self.log(f"took {seconds:.1f} s")

    def log(self, what):
        print(f"{time.strftime('%H:%M:%S')} {self.doing.__name__}: {what}", file=sys.stderr, flush=True)


def replay(journal):
    model = Model()
    if os.path.exists(journal):
        for line in open(journal):
            model.apply(json.loads(line))
    return model


def verify(mount, journal, worker):
    """Problems found, as sentences."""
    problems = []
    for file, state in enumerate(replay(journal).files):
        path = os.path.join(mount, f"w{worker}.f{file}")
        try:
            size = os.stat(path).st_size
        except FileNotFoundError:
            if state.must_exist:
                problems.append(f"{path}: synced, and gone")
            continue
        if not state.may_exist:
            problems.append(f"{path}: removed, and there")
        if not state.size_min <= size <= state.size_max:
            problems.append(f"{path}: {size} bytes, may be {state.size_min} to {state.size_max}")
        with open(path, "rb", buffering=256 * GRAIN) as f:
            index = 0
            while data := f.read(GRAIN):
                problems += [f"{path} grain {index}: {p}" for p in state.problems_of(worker, file, index, data)]
                index += 1
    return problems


if __name__ == "__main__":
    Worker(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])).run()
