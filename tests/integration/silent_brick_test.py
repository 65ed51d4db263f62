#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A brick that is silent holds up its own files only, however many requests wait for it.

usage: silent_brick_test.py BIN_DIRECTORY
"""
import concurrent.futures
import ctypes
import errno
import fcntl
import mmap
import os
import signal
import subprocess
import sys
import time
import unittest

import ring_client
from cluster import Cluster
from console_client import Console

BIN = sys.argv.pop(1)
PAGE = 4096
SIZE = 1 << 20
STUCK = 200  # requests; the mount has 16 workers
AT_ONCE = 1.0  # seconds; one in twenty may be late, on a busy machine, and two of few
LATE = 5.0


LIBC = ctypes.CDLL(None, use_errno=True)
MADV_POPULATE_READ = 22
MS_SYNC = 4


def mapped_call(function, mapped, offset, flag):
    """Of libc, on a page of a mapping: without Python's lock, and an errno instead of a SIGBUS."""
    anchor = ctypes.c_char.from_buffer(mapped, offset)
    if getattr(LIBC, function)(ctypes.c_void_p(ctypes.addressof(anchor)), ctypes.c_size_t(PAGE), flag) != 0:
        raise OSError(ctypes.get_errno(), function)


class Request:
    """One of each kind in turn, each on a page of its own; every one of them needs the brick."""

    KINDS = ("direct read", "read", "write", "mapped read", "msync", "fsync", "close")

    def __init__(self, path, number, kinds=KINDS):
        self.kind = kinds[number % len(kinds)]
        self.offset = number % (SIZE // PAGE) * PAGE
        cached = self.kind in ("read", "mapped read", "msync")
        self.file = os.open(path, os.O_RDWR | (0 if cached else os.O_DIRECT))
        self.page = mmap.mmap(-1, PAGE)
        self.page[:] = bytes([number % 256]) * PAGE
        self.mapped = mmap.mmap(self.file, SIZE) if self.kind in ("mapped read", "msync") else None

    def prepare(self):
        """What has to be done while the brick answers."""
        if self.kind in ("fsync", "close"):
            os.pwritev(self.file, [self.page], self.offset)
        if self.kind == "msync":
            self.mapped[self.offset] = self.offset // PAGE % 256

    def run(self):
        """True: it ended well."""
        match self.kind:
            case "direct read":
                return os.preadv(self.file, [self.page], self.offset) == PAGE
            case "read":
                return len(os.pread(self.file, PAGE, self.offset)) == PAGE
            case "write":
                return os.pwritev(self.file, [self.page], self.offset) == PAGE
            case "mapped read":
                mapped_call("madvise", self.mapped, self.offset, MADV_POPULATE_READ)
            case "msync":
                mapped_call("msync", self.mapped, self.offset, MS_SYNC)
            case "fsync":
                os.fsync(self.file)
            case "close":
                os.close(os.dup(self.file))  # FUSE's FLUSH
        return True

    def end(self):
        if self.mapped is not None:
            self.mapped.close()
        os.close(self.file)


class OnTwoBricks(unittest.TestCase):
    OPTIONS = "actimeo=0,flush_after=0"
    FILES = 24
    POOL = "256M"

    def setUp(self):
        self.cluster = Cluster(BIN, pool_size=self.POOL, lease_seconds=30, bricks=2).start_all()
        self.mount = self.cluster.mount(self.OPTIONS)
        self.pool = concurrent.futures.ThreadPoolExecutor(max(STUCK, self.FILES) + 16)
        for i in range(self.FILES):
            self.write_new(f"file{i}")
        self.there, self.silenced = self.files_by_brick()
        self.assertGreater(min(len(self.there), len(self.silenced)), 3)

    def tearDown(self):
        self.cluster.signal("brick2", signal.SIGCONT)
        self.pool.shutdown()
        self.cluster.close()

    def write_new(self, name):
        with open(self.mount / name, "wb", buffering=0) as f:
            f.write(os.urandom(SIZE))
            os.fsync(f.fileno())

    def files_by_brick(self):
        console = Console(self.cluster.home / "console.sock")
        second = {brick["id"] for brick in console.items("/bricks") if "brick2" in brick["address"]}
        place = {f"file{i}": console.get(f"/files?path=/file{i}").json["extents"][0]["brick"] for i in range(self.FILES)}
        return ([name for name in place if place[name] not in second], [name for name in place if place[name] in second])

    def drop_caches(self):
        with open("/proc/sys/vm/drop_caches", "w") as f:
            f.write("3")

    def silence(self, count=STUCK, kinds=Request.KINDS):
        """Stops the brick, with so many requests under way to it."""
        requests = [Request(self.mount / self.silenced[i % len(self.silenced)], i, kinds) for i in range(count)]
        self.drop_caches()
        for request in requests:
            request.prepare()
        self.cluster.signal("brick2", signal.SIGSTOP)
        begin = time.monotonic()
        under_way = {self.pool.submit(request.run): request for request in requests}
        time.sleep(0.3)
        return begin, under_way

    def work_of_others(self, turn):
        """What has nothing to do with the brick, each by itself: how long it took."""
        name = self.there[turn % len(self.there)]
        page = mmap.mmap(-1, PAGE)

        def with_file(flags, what):
            f = os.open(self.mount / name, flags)
            try:
                return what(f)
            finally:
                os.close(f)

        def replace():
            path = self.mount / f"new{turn}"
            os.mkdir(path)
            os.rename(path, self.mount / f"moved{turn}")
            os.rmdir(self.mount / f"moved{turn}")

        works = {
            "direct read": lambda: with_file(os.O_RDONLY | os.O_DIRECT, lambda f: os.preadv(f, [page], 0)),
            "read": lambda: with_file(os.O_RDONLY, lambda f: os.pread(f, PAGE, turn * PAGE)),
            "write and fsync": lambda: with_file(os.O_WRONLY, lambda f: (os.pwrite(f, b"x" * PAGE, 0), os.fsync(f))),
            "stat": lambda: [os.stat(self.mount / n) for n in self.there],
            "stat of the silent one's": lambda: [os.stat(self.mount / n) for n in self.silenced],
            "names": replace,
            "listing": lambda: os.listdir(self.mount.path),
        }
        took = {}
        for what, work in works.items():
            begin = time.monotonic()
            self.pool.submit(work).result(timeout=120)
            took[what] = time.monotonic() - begin
        return took

    def others_go_on(self, seconds, until=lambda: True):
        """So long, and until that."""
        slowest, late = {}, 0
        begin = time.monotonic()
        turn = 0
        while turn == 0 or time.monotonic() < begin + seconds or not until():
            self.assertLess(time.monotonic(), begin + 60)
            for what, took in self.work_of_others(turn).items():
                slowest[what] = max(slowest.get(what, 0), took)
                late += took > AT_ONCE
            turn += 1
            time.sleep(0.1)
        print(f"{turn} turns meanwhile, slowest: " + ", ".join(f"{what} {took:.2f} s" for what, took in slowest.items()))
        self.assertLess(max(slowest.values()), LATE)
        self.assertLessEqual(late, max(2, turn * len(slowest) / 20))

    def all_end_well(self, under_way, seconds):
        begin = time.monotonic()
        ended = {request.kind: 0 for request in under_way.values()}
        for future in concurrent.futures.as_completed(under_way, seconds):
            request = under_way[future]
            self.assertTrue(future.result(), request.kind)
            ended[request.kind] += 1
            request.end()
        print(f"all {len(under_way)} ended well {time.monotonic() - begin:.2f} s after it went on: {ended}")


class SmallFilesOfASilentBrick(OnTwoBricks):
    OPTIONS = "flush_after=0"
    SMALL = 80

    def test_opens_that_read_wait_and_others_go_on(self):
        """More of them than the mount has workers; each reads its file in the call that opens it."""
        for i in range(self.SMALL):
            with open(self.mount / f"small{i}", "wb", buffering=0) as f:
                f.write(bytes([i]) * 3072)
                os.fsync(f.fileno())
        console = Console(self.cluster.home / "console.sock")
        second = {brick["id"] for brick in console.items("/bricks") if "brick2" in brick["address"]}
        brick = [console.get(f"/files?path=/small{i}").json["extents"][0]["brick"] for i in range(self.SMALL)]
        silenced = [i for i in range(self.SMALL) if brick[i] in second]
        self.assertGreater(len(silenced), 20)
        self.mount = self.cluster.mount(self.OPTIONS, name="reader")
        for name in self.there:
            (self.mount / name).read_bytes()  # its bricks are connected, and that small files are small is known
        for i in silenced:
            os.stat(self.mount / f"small{i}")
        self.cluster.signal("brick2", signal.SIGSTOP)
        reads = [self.pool.submit((self.mount / f"small{i}").read_bytes) for i in silenced]
        try:
            time.sleep(0.3)
            self.others_go_on(3)
            self.assertFalse(any(read.done() for read in reads))
        finally:
            self.cluster.signal("brick2", signal.SIGCONT)
        self.assertEqual([read.result(30) for read in reads], [bytes([i]) * 3072 for i in silenced])


class SilentBrick(OnTwoBricks):
    def test_two_hundred_requests_wait_and_others_go_on(self):
        _, under_way = self.silence()
        try:
            self.others_go_on(3)
            workers = self.mount.status()["workers"]
            print(f"{workers['parked']} are parked ({workers['parked_bytes']} bytes), {workers['busy']} have a worker")
            # The kernel keeps back all but one write of a file, and some ended before the brick was known to be silent.
            self.assertGreater(workers["parked"], 30)
            self.assertGreater(sum(not future.done() for future in under_way), 150)
        finally:
            self.cluster.signal("brick2", signal.SIGCONT)
        self.all_end_well(under_way, 30)

    def test_a_parked_reader_can_be_killed(self):
        # Begun first: it inherits, and closes, none of the files.
        command = f"read go; exec dd if={self.mount / self.silenced[0]} of=/dev/null bs=4k count=1 iflag=direct"
        reader = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE)
        # No pages that are being written back: for those the kernel itself waits, deaf.
        _, under_way = self.silence(100, ["direct read"])
        try:
            reader.stdin.write(b"go\n")
            reader.stdin.close()
            time.sleep(1)
            self.assertIsNone(reader.poll())
            begin = time.monotonic()
            reader.kill()
            reader.wait(timeout=20)
            print(f"killed within {time.monotonic() - begin:.2f} s")
            self.assertLess(time.monotonic() - begin, 5)
        finally:
            self.cluster.signal("brick2", signal.SIGCONT)
        self.all_end_well(under_way, 30)

    def test_a_soft_mount_waits_no_longer_than_it_says(self):
        soft = self.cluster.mount("soft,timeo=20,retrans=0,actimeo=0", name="soft")
        files = [os.open(soft / self.silenced[i % len(self.silenced)], os.O_RDONLY | os.O_DIRECT) for i in range(100)]
        pages = [mmap.mmap(-1, PAGE) for _ in files]
        for file, page in zip(files, pages):
            os.preadv(file, [page], 0)

        def read(file, page):
            try:
                return os.preadv(file, [page], 0)
            except OSError as error:
                return -error.errno
        self.cluster.signal("brick2", signal.SIGSTOP)
        begin = time.monotonic()
        reads = [self.pool.submit(read, file, page) for file, page in zip(files, pages)]
        first, _ = concurrent.futures.wait(reads, 8)
        answers = [future.result() for future in first]
        print(f"{len(answers)} of {len(reads)} answered before the connection was given up")
        self.assertGreater(len(answers), 60)
        self.assertEqual(set(answers), {-errno.EIO})
        concurrent.futures.wait(reads, 60)
        print(f"all within {time.monotonic() - begin:.1f} s")
        self.assertTrue(all(future.done() for future in reads))
        self.cluster.signal("brick2", signal.SIGCONT)
        for file in files:
            os.close(file)

    def connections(self):
        return sum(device["connected"] for device in self.mount.status()["devices"])

    def test_also_when_the_connection_is_given_up(self):
        _, under_way = self.silence()
        try:
            self.assertEqual(self.connections(), 2)
            self.others_go_on(0, until=lambda: self.connections() < 2)
            self.others_go_on(3)
        finally:
            self.cluster.signal("brick2", signal.SIGCONT)
        self.all_end_well(under_way, 40)


class PagesOfASilentBrick(OnTwoBricks):
    """The kernel is told to drop pages of a file, and one of them is being read from the silent brick."""

    def test_others_change_words_append_lock_and_close(self):
        ring = ring_client.RingClient(self.mount.path)
        self.addCleanup(ring.close)
        memory, _ = ring.add_memory(PAGE)
        others = [os.open(self.mount / name, os.O_RDWR) for name in self.there]
        silenced = [os.open(self.mount / name, os.O_RDWR) for name in self.silenced]
        for other in others:
            ring_client.fetch_and_add(other, 0, 1)
        # Locked for the first time, a file loses all its pages.
        _, under_way = self.silence(3 * len(silenced), ["read"])
        locks = [self.pool.submit(fcntl.lockf, file, fcntl.LOCK_EX) for file in silenced]
        try:
            time.sleep(0.5)
            self.assertFalse(all(lock.done() for lock in locks), "nothing waits for a page")
            works = {
                "word": lambda other: ring_client.fetch_and_add(other, 0, 1),
                "append": lambda other: ring.append(other, memory, 0, 8),
                "lock": lambda other: (fcntl.lockf(other, fcntl.LOCK_EX), fcntl.lockf(other, fcntl.LOCK_UN)),
                "close": lambda other: os.close(os.dup(other)),
                "stat": lambda other: os.fstat(other),
            }
            for what, work in works.items():
                begin = time.monotonic()
                for done in [self.pool.submit(work, other) for other in others]:
                    done.result(timeout=30)
                print(f"{what}: {len(others)} in {time.monotonic() - begin:.2f} s")
                self.assertLess(time.monotonic() - begin, LATE, what)
        finally:
            self.cluster.signal("brick2", signal.SIGCONT)
        self.all_end_well(under_way, 30)
        for lock in locks:
            lock.result(30)
        for file in others + silenced:
            os.close(file)


class NoRoomLeft(OnTwoBricks):
    """More waits for the brick than may be parked: 128 MiB, and a worker for each of the others while one is idle."""

    FILES = 420
    POOL = "1G"

    def test_what_finds_no_room_fails_and_the_rest_ends_well(self):
        descriptors, wanted = [], {}
        for number, name in enumerate(self.silenced):
            descriptors.append(os.open(self.mount / name, os.O_RDWR | os.O_DIRECT))
            wanted[descriptors[-1]] = mmap.mmap(-1, SIZE)
            wanted[descriptors[-1]][:] = bytes([number % 256]) * SIZE
        self.assertGreater(len(descriptors), 128 + 48 + 5)

        def write(descriptor):
            try:
                return os.pwritev(descriptor, [wanted[descriptor]], 0)
            except OSError as error:
                return -error.errno
        self.cluster.signal("brick2", signal.SIGSTOP)
        writes = {self.pool.submit(write, descriptor): descriptor for descriptor in descriptors}
        try:
            refused, _ = concurrent.futures.wait(writes, 15, concurrent.futures.FIRST_COMPLETED)
            self.assertTrue(refused, "nobody was told that there is no room")
            self.others_go_on(2)
        finally:
            self.cluster.signal("brick2", signal.SIGCONT)
        answers = {writes[done]: done.result() for done in concurrent.futures.as_completed(writes, 60)}
        print(f"{sum(a == SIZE for a in answers.values())} written, {sum(a != SIZE for a in answers.values())} refused")
        self.assertEqual(set(answers.values()), {SIZE, -errno.ENOBUFS})
        page = mmap.mmap(-1, SIZE)
        for descriptor, answer in answers.items():
            if answer == SIZE:
                os.preadv(descriptor, [page], 0)
                self.assertEqual(page[:], wanted[descriptor][:])
            os.close(descriptor)


if __name__ == "__main__":
    unittest.main(verbosity=2)
