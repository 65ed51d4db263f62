#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kernel's pages: own writes leave them alone, another host's change takes them away.

usage: page_cache_test.py BIN_DIRECTORY
"""
import fcntl
import mmap
import os
import sys
import threading
import time
import unittest

from cluster import Cluster

BIN = sys.argv.pop(1)
MIB = 1 << 20
SECONDS = 1  # acregmin
# What there is to bear: acregmin, an answer, and a machine with other things to do.
IN_TIME = SECONDS + 1


def direct_block(byte, size=4096):
    block = mmap.mmap(-1, size)
    block[:] = byte * size
    return block


class PageCache(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="1G").start_all()
        options = f"acregmin={SECONDS},acregmax=60,flush_after=0"
        cls.a, cls.b = cls.cluster.mount(options, name="a"), cls.cluster.mount(options, name="b")

    @classmethod
    def tearDownClass(cls):
        cls.a.unmount()
        cls.b.unmount()
        cls.cluster.close()

    def paths(self):
        name = self.id().rsplit(".", 1)[-1]
        return self.a / name, self.b / name

    def open(self, path, flags=os.O_RDONLY):
        descriptor = os.open(path, flags, 0o644)
        self.addCleanup(os.close, descriptor)
        return descriptor

    def bytes_read(self, mount):
        """By the daemon, for the kernel."""
        statistics = mount.statistics()
        return statistics["rdma_read_bytes"] + statistics["mds_read_bytes"]

    def cached(self, path, flags=os.O_RDONLY):
        """A descriptor of a file whose pages are all there."""
        descriptor = self.open(path, flags)
        while os.read(descriptor, MIB):
            pass
        return descriptor

    def sees(self, read, wanted, seconds=IN_TIME):
        """Until it is read; nothing else than what was there before may be seen meanwhile."""
        before, end = read(), time.monotonic() + seconds
        while (seen := read()) != wanted:
            self.assertEqual(seen, before, "neither the old bytes nor the new ones")
            self.assertLess(time.monotonic(), end, f"not within {seconds} s")
            time.sleep(0.01)

    # --- our own changes
    # One that looks like another's, because a question was answered between our commit and its answer, drops the pages once: that is
    # allowed, at each write it is not.

    def test_own_writes_drop_no_pages(self):
        path, _ = self.paths()
        path.write_bytes(os.urandom(8 * MIB))
        file = self.cached(path, os.O_RDWR)
        before = self.bytes_read(self.a)
        for i in range(200):
            os.pwrite(file, b"w" * 4096, i * 4096)
            self.assertEqual(os.pread(file, 4096, i * 4096), b"w" * 4096)
            os.pread(file, 4096, 4 * MIB + i % 8 * 65536)
            if i % 20 == 0:
                os.fsync(file)
                self.assertEqual(os.fstat(file).st_size, 8 * MIB)
        self.assertLess(self.bytes_read(self.a) - before, 200 * 4096 / 4)

    def test_own_writes_of_minutes_drop_no_pages(self):
        """Longer than the pages are believed without a question."""
        path, _ = self.paths()
        path.write_bytes(os.urandom(4 * MIB))
        file = self.cached(path, os.O_RDWR)
        before = self.bytes_read(self.a)
        end = time.monotonic() + 4 * SECONDS
        while time.monotonic() < end:
            os.pwrite(file, b"w" * 4096, 0)
            os.pread(file, 4096, 2 * MIB)
            time.sleep(0.05)
        self.assertLess(self.bytes_read(self.a) - before, 80 * 4096 / 4)

    def test_close_and_open_after_own_writes_drop_no_pages(self):
        path, _ = self.paths()
        path.write_bytes(os.urandom(4 * MIB))
        self.cached(path)
        before = self.bytes_read(self.a)
        for i in range(5):
            with open(path, "r+b", buffering=0) as file:
                file.write(b"%d" % i)
            with open(path, "rb") as file:
                self.assertEqual(len(file.read()), 4 * MIB)
        self.assertLess(self.bytes_read(self.a) - before, 3 * 4 * MIB)

    def test_a_database_keeps_its_pages(self):
        """As sqlite does a transaction: lock, stat, read, write, fsync, unlock; nobody else is there."""
        path, _ = self.paths()
        path.write_bytes(os.urandom(4 * MIB))
        file = self.cached(path, os.O_RDWR)
        fcntl.lockf(file, fcntl.LOCK_EX, 100, 0)  # the first one drops all pages: it has nothing to go by
        fcntl.lockf(file, fcntl.LOCK_UN, 100, 0)
        self.cached(path)
        before = self.bytes_read(self.a)
        for i in range(30):
            fcntl.lockf(file, fcntl.LOCK_EX, 100, 0)
            self.assertEqual(os.fstat(file).st_size, 4 * MIB)
            os.pread(file, 4096, 2 * MIB + i % 4 * 65536)
            os.pwrite(file, os.urandom(4096), i * 4096)
            os.fsync(file)
            fcntl.lockf(file, fcntl.LOCK_UN, 100, 0)
            self.assertEqual(len(os.pread(file, 4096, 3 * MIB + i % 4 * 65536)), 4096)
        self.assertLess(self.bytes_read(self.a) - before, 60 * 4096 / 2)

    def test_own_appends_drop_no_pages(self):
        path, _ = self.paths()
        path.write_bytes(os.urandom(4 * MIB))
        file = self.open(path, os.O_RDWR)
        # The first one goes through the server, which changes such a file twice.
        os.pwrite(file, b"w" * 4096, 4 * MIB)
        os.fsync(file)
        while os.read(file, MIB):
            pass
        before = self.bytes_read(self.a)
        for i in range(100):
            os.pwrite(file, b"w" * 4096, 4 * MIB + i * 4096)
            self.assertEqual(os.fstat(file).st_size, 4 * MIB + (i + 1) * 4096)
            self.assertEqual(len(os.pread(file, 4096, i % 8 * 65536)), 4096)
            if i % 10 == 0:
                os.fsync(file)
        self.assertLess(self.bytes_read(self.a) - before, 100 * 4096 / 2)

    def test_an_own_direct_write_is_seen_through_the_pages(self):
        path, _ = self.paths()
        path.write_bytes(b"0" * MIB)
        reader, writer = self.cached(path), self.open(path, os.O_RDWR | os.O_DIRECT)
        stop = threading.Event()

        def read_on():
            while not stop.is_set():
                os.pread(reader, 65536, 0)
        thread = threading.Thread(target=read_on)
        thread.start()
        try:
            for i in range(300):
                byte = bytes([65 + i % 26])
                os.pwrite(writer, direct_block(byte), 4096 * (i % 16))
                self.assertEqual(os.pread(reader, 4096, 4096 * (i % 16)), byte * 4096)
        finally:
            stop.set()
            thread.join()

    def test_what_is_written_behind_the_end_leaves_no_false_zeros(self):
        """Ours goes behind what another host has appended since we heard of the file."""
        path_a, path_b = self.paths()
        path_a.write_bytes(b"a" * 70_000)
        file = self.cached(path_a, os.O_RDWR)
        with open(path_b, "ab") as other:
            other.write(b"b" * 100)
        os.pwrite(file, b"A", 70_200)
        time.sleep(0.2)
        self.assertEqual(os.pread(file, 300, 69_999), b"a" + b"b" * 100 + bytes(100) + b"A")

    # --- changes of others

    def test_an_overwrite_elsewhere_is_seen_by_an_open_reader(self):
        path_a, path_b = self.paths()
        path_a.write_bytes(b"0" * MIB)
        reader = self.cached(path_a)
        for i in range(1, 4):
            with open(path_b, "r+b") as other:
                other.write(b"%d" % i * MIB)
            self.sees(lambda: os.pread(reader, 4096, 500_000), b"%d" % i * 4096)

    def test_a_reader_who_writes_elsewhere_in_the_file_sees_the_others_bytes(self):
        path_a, path_b = self.paths()
        path_a.write_bytes(b"0" * MIB)
        ours = self.cached(path_a, os.O_RDWR)
        for i in range(1, 6):
            os.pwrite(ours, b"A" * 4096, 0)
            with open(path_b, "r+b", buffering=0) as other:
                other.seek(MIB // 2)
                other.write(b"%d" % i * 4096)
            # Own changes, told to the server, on both sides of the other's.
            os.pwrite(ours, b"B" * 4096, 0)
            os.fsync(ours)
            self.sees(lambda: os.pread(ours, 4096, MIB // 2), b"%d" % i * 4096)

    def test_an_append_elsewhere_is_seen_without_zeros(self):
        path_a, path_b = self.paths()
        content = b"0" * 70_001
        path_a.write_bytes(content)
        reader = self.cached(path_a)
        for i in range(1, 30):
            tail = b"%d" % (i % 10) * 777
            with open(path_b, "ab") as other:
                other.write(tail)
            end = time.monotonic() + IN_TIME
            while (seen := os.pread(reader, 2 * MIB, 65_536)) != (content + tail)[65_536:]:
                self.assertEqual(seen, content[65_536:], "neither the old bytes nor the new ones")
                self.assertLess(time.monotonic(), end)
            content += tail

    def test_a_mapping_is_never_larger_than_the_kernel_believes(self):
        """Whoever maps what fstat says finds bytes there, not SIGBUS."""
        path_a, path_b = self.paths()
        path_a.write_bytes(b"x" * 70_001)
        reader = self.cached(path_a)
        child = os.fork()
        if child == 0:
            end, last = time.monotonic() + 5 * SECONDS, 0
            while time.monotonic() < end:
                last = os.fstat(reader).st_size
                with mmap.mmap(reader, last, prot=mmap.PROT_READ) as mapped:
                    if mapped[last - 1] != ord("x") or mapped[70_000] != ord("x"):
                        os._exit(2)
            os._exit(0 if last > 70_001 else 3)
        end = time.monotonic() + 4 * SECONDS
        with open(path_b, "ab", buffering=0) as other:
            while time.monotonic() < end:
                other.write(b"x" * 7777)
                os.fsync(other.fileno())
                time.sleep(0.02)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_a_file_cut_and_extended_elsewhere(self):
        path_a, path_b = self.paths()
        path_a.write_bytes(b"0" * MIB)
        reader = self.cached(path_a)
        os.truncate(path_b, 1000)
        os.truncate(path_b, MIB)
        self.sees(lambda: os.pread(reader, 4096, 8192), bytes(4096))
        self.assertEqual(os.pread(reader, 2000, 0), b"0" * 1000 + bytes(1000))
        os.truncate(path_b, 500)
        self.sees(lambda: os.pread(reader, 4096, 8192), b"")
        seen = os.pread(reader, 4096, 0)
        self.assertEqual(seen, b"0" * 500, f"{len(seen)} bytes; elsewhere {os.stat(path_b).st_size}, here {os.fstat(reader).st_size}")

    def test_a_read_that_finds_nothing_is_not_taken_for_the_end(self):
        path_a, path_b = self.paths()
        path_a.write_bytes(b"0" * MIB)
        reader = self.cached(path_a)
        os.truncate(path_b, 500)
        os.posix_fadvise(reader, 0, 0, os.POSIX_FADV_DONTNEED)  # of the pages; what is believed of the size stays
        os.pread(reader, 4096, 8192)
        self.assertEqual(os.pread(reader, 4096, 0), b"0" * 500)

    def test_an_open_sees_what_another_has_closed(self):
        path_a, path_b = self.paths()
        path_a.write_bytes(b"0" * 300_001)
        held = self.cached(path_a)
        for i in range(1, 20):
            data = b"%d" % (i % 10) * (300_001 + (-1) ** i * i * 1000)
            with open(path_b, "wb") as other:
                other.write(data)
            self.assertEqual(path_a.read_bytes(), data)
            self.assertEqual(os.pread(held, len(data) + 1, 0), data)

    def test_a_lock_shows_what_the_one_before_has_written(self):
        path_a, path_b = self.paths()
        path_a.write_bytes(b"0" * 200_000)
        a, b = self.cached(path_a, os.O_RDWR), self.cached(path_b, os.O_RDWR)
        value = b"0" * 10
        for i in range(20):
            for descriptor in (a, b):
                fcntl.lockf(descriptor, fcntl.LOCK_EX)
                self.assertEqual(os.pread(descriptor, 10, 150_000), value)
                value = b"%010d" % (i * 2 + (descriptor == b))
                os.pwrite(descriptor, value, 150_000)
                fcntl.lockf(descriptor, fcntl.LOCK_UN)

    def test_a_name_that_another_file_got_elsewhere(self):
        path_a, path_b = self.paths()
        path_a.write_bytes(b"old" * 50_000)
        held = self.cached(path_a)
        new = path_b.with_suffix(".new")
        new.write_bytes(b"new" * 50_000)
        os.rename(new, path_b)
        self.assertEqual(path_a.read_bytes(), b"new" * 50_000)
        self.assertEqual(os.pread(held, 3, 90_000), b"old")

    def test_stat_never_shows_a_size_whose_bytes_are_zeros(self):
        """Who sees the new size reads the new bytes: at once, through the page that was there."""
        path_a, path_b = self.paths()
        content = b"x" * 70_001
        path_a.write_bytes(content)
        reader = self.cached(path_a)
        stop = threading.Event()

        def append():
            with open(path_b, "ab", buffering=0) as other:
                while not stop.is_set():
                    other.write(b"x" * 333)
                    os.fsync(other.fileno())
                    time.sleep(0.02)
        thread = threading.Thread(target=append)
        thread.start()
        try:
            end = time.monotonic() + 5 * SECONDS
            while time.monotonic() < end:
                size = os.fstat(reader).st_size
                seen = os.pread(reader, size, 65_536)
                self.assertEqual(seen, b"x" * len(seen))
        finally:
            stop.set()
            thread.join()
        self.assertGreater(size, len(content))

    # --- others' options, other servers

    def test_without_belief_each_read_asks(self):
        path_a, path_b = self.paths()
        path_b.write_bytes(b"0" * 100_000)
        mount = self.cluster.mount("noac", name="noac")
        reader = self.cached(mount / path_a.name)
        for i in range(1, 10):
            with open(path_b, "r+b") as other:
                other.write(b"%d" % i * 100_000)
            self.assertEqual(os.pread(reader, 100, 60_000), b"%d" % i * 100)


if __name__ == "__main__":
    unittest.main(verbosity=2)
