# SPDX-License-Identifier: Apache-2.0
"""The write workload of the crash tests, and what must be true afterwards.

Each worker owns its files. Every 4 KiB grain it writes names the worker, the file, the grain and a generation, so that a
reader can tell old from new and own from foreign. What fsync (or a namespace call) has acknowledged goes into a journal
outside the mount before the next step.

usage: workload.py MOUNT JOURNAL WORKER SEED      (runs until an error ends it or it is killed)
"""
import errno
import json
import os
import random
import struct
import sys

GRAIN = 4096
HEADER = struct.Struct(">8sIIQQ")
MAGIC = b"PNFSRDMA"


def grain(worker, file, index, generation):
    header = HEADER.pack(MAGIC, worker, file, index, generation)
    return (header * (GRAIN // len(header))).ljust(GRAIN, b"\xee")


def parse(data):
    """(worker, file, index, generation) of a grain, None for zeros; ValueError for anything else, torn grains included."""
    if data == bytes(len(data)):
        return None
    magic, worker, file, index, generation = HEADER.unpack_from(data)
    if magic != MAGIC or data != grain(worker, file, index, generation)[:len(data)]:
        raise ValueError(f"not a grain of ours: {data[:32].hex()}")
    return worker, file, index, generation


class Worker:
    def __init__(self, mount, journal, worker, seed):
        self.mount, self.worker, self.chance = mount, worker, random.Random(seed)
        self.journal = open(journal, "a", buffering=1)
        self.generation = int.from_bytes(os.urandom(5), "big") << 16 if seed is None else seed << 20
        self.files = {}

    def note(self, **what):
        self.journal.write(json.dumps(what) + "\n")

    def path(self, file):
        return os.path.join(self.mount, f"w{self.worker}.f{file}")

    def write_and_sync(self, file):
        count = self.chance.choice([1, 1, 2, 4, 16, 64, 256])
        start = self.chance.randrange(1024) if self.chance.random() < 0.7 else 0
        self.generation += 1
        flags = os.O_RDWR | os.O_CREAT
        # Before: the journal knows what may appear; after: what must.
        self.note(begin=file, start=start, count=count, generation=self.generation)
        fd = os.open(self.path(file), flags, 0o644)
        try:
            data = b"".join(grain(self.worker, file, start + i, self.generation) for i in range(count))
            os.pwrite(fd, data, start * GRAIN)
            (os.fsync if self.chance.random() < 0.5 else os.fdatasync)(fd)
            self.note(synced=file, start=start, count=count, generation=self.generation)
        finally:
            os.close(fd)

    def remove(self, file):
        self.note(removing=file)
        try:
            os.unlink(self.path(file))
        except FileNotFoundError:
            pass
        self.note(removed=file)

    def truncate(self, file):
        keep = self.chance.randrange(64)
        self.note(truncating=file, keep=keep)
        try:
            os.truncate(self.path(file), keep * GRAIN)
        except FileNotFoundError:
            return
        self.note(truncated=file, keep=keep)

    def run(self):
        while True:
            file = self.chance.randrange(6)
            what = self.chance.random()
            try:
                if what < 0.85:
                    self.write_and_sync(file)
                elif what < 0.93:
                    self.truncate(file)
                else:
                    self.remove(file)
            except OSError as e:
                # EIO at a sync is honest after a crash: that write was not acknowledged.
                if e.errno in (errno.ENOTCONN, errno.ECONNABORTED, errno.ENODEV):
                    return
                if e.errno not in (errno.EIO, errno.ENOSPC, errno.ESTALE):
                    raise


def expected(journal):
    """Replays a worker's journal: per file {exists, uncertain, grains: {index: least generation}, size_min}."""
    files = {}
    pending = None
    for line in open(journal):
        try:
            e = json.loads(line)
        except ValueError:
            break  # the worker was killed while writing this line
        key = next(iter(e))
        state = files.setdefault(e[key], {"exists": False, "maybe_gone": False, "grains": {}, "size_min": 0})
        if key in ("begin", "removing", "truncating"):
            # An operation begun and not acknowledged may or may not have happened.
            if key == "removing":
                state["maybe_gone"] = True
            elif key == "truncating":
                state.setdefault("maybe_cut", []).append(e["keep"])
        elif key == "synced":
            state["exists"], state["maybe_gone"] = True, False
            state["maybe_cut"] = []
            for i in range(e["start"], e["start"] + e["count"]):
                state["grains"][i] = e["generation"]
            state["size_min"] = max(state["size_min"], (e["start"] + e["count"]) * GRAIN)
        elif key == "removed":
            files[e[key]] = {"exists": False, "maybe_gone": False, "grains": {}, "size_min": 0}
        elif key == "truncated":
            state["grains"] = {i: g for i, g in state["grains"].items() if i < e["keep"]}
            state["size_min"] = min(state["size_min"], e["keep"] * GRAIN)
            state["maybe_cut"] = []
    del pending
    return files


def verify(mount, journal, worker):
    """Problems found, as sentences."""
    problems = []
    for file, state in expected(journal).items():
        path = os.path.join(mount, f"w{worker}.f{file}")
        if not os.path.exists(path):
            if state["exists"] and not state["maybe_gone"]:
                problems.append(f"{path}: synced, and gone")
            continue
        # A removal that was begun and not acknowledged, and then a new file: only what came later is certain.
        cut = min(state.get("maybe_cut") or [1 << 60])
        size = os.path.getsize(path)
        if not state["maybe_gone"] and size < min(state["size_min"], cut * GRAIN):
            problems.append(f"{path}: {size} bytes, {state['size_min']} were synced")
        with open(path, "rb") as f:
            index = 0
            while data := f.read(GRAIN):
                try:
                    found = parse(data)
                except ValueError as e:
                    problems.append(f"{path} grain {index}: {e}")
                    found = None
                if found is not None and found[:3] != (worker, file, index):
                    problems.append(f"{path} grain {index}: holds grain {found[2]} of w{found[0]}.f{found[1]}")
                least = state["grains"].get(index)
                certain = not state["maybe_gone"] and index < cut
                if certain and least is not None and (found is None or found[3] < least):
                    problems.append(f"{path} grain {index}: generation {found and found[3]}, {least} was synced")
                index += 1
    return problems


if __name__ == "__main__":
    Worker(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])).run()
