#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""-o writeback: the kernel collects writes and owns size and mtime; for a single writer. What is written is there, before
and after fsync, for this mount and, once closed, for others.

usage: writeback_test.py BIN_DIRECTORY
"""
import mmap
import os
import random
import sys
import time
import unittest

from cluster import Cluster, OpenFile

BIN = sys.argv.pop(1)
MIB = 1 << 20


class Writeback(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="1G", lease_seconds=5).start_all()
        cls.mount = cls.cluster.mount("writeback", name="writer")
        cls.other = cls.cluster.mount("noac", name="other")

    @classmethod
    def tearDownClass(cls):
        cls.mount.unmount()
        cls.other.unmount()
        cls.cluster.close()

    def paths(self):
        name = self.id().rsplit(".", 1)[-1]
        return self.mount / name, self.other / name

    def test_it_is_in_force(self):
        """Small writes reach the servers together, not one by one."""
        path, _ = self.paths()
        before = self.mount.statistics()
        with open(path, "wb", buffering=0) as f:
            for _ in range(1000):
                f.write(b"x" * 1000)
        after = self.mount.statistics()
        self.assertLess(after["rdma_writes"] + after["mds_writes"] - before["rdma_writes"] - before["mds_writes"], 200)
        self.assertEqual(path.stat().st_size, 1_000_000)

    def test_random_writes_of_all_sizes_are_all_there(self):
        path, other = self.paths()
        chance, expected = random.Random(3), bytearray(6 * MIB)
        with open(path, "w+b", buffering=0) as f:
            for i in range(400):
                at = chance.randrange(len(expected) - 100_000)
                data = chance.randbytes(chance.choice([1, 10, 4096, 5000, 100_000]))
                os.pwrite(f.fileno(), data, at)
                expected[at:at + len(data)] = data
                if i % 100 == 50:
                    os.fsync(f.fileno())
                if i % 10 == 0:
                    self.assertEqual(os.pread(f.fileno(), 8192, at), bytes(expected[at:at + 8192])
                                     [:max(0, os.fstat(f.fileno()).st_size - at)])
            size = os.fstat(f.fileno()).st_size
        self.assertEqual(path.read_bytes(), bytes(expected[:size]))
        self.assertEqual(other.read_bytes(), bytes(expected[:size]))

    def test_appends_come_one_behind_the_other(self):
        path, other = self.paths()
        expected = b""
        for opened in range(3):
            with open(path, "ab", buffering=0) as f:
                for i in range(200):
                    line = f"{opened} {i} {'.' * (i % 90)}\n".encode()
                    f.write(line)
                    expected += line
        self.assertEqual(path.read_bytes(), expected)
        self.assertEqual(other.read_bytes(), expected)

    def test_truncation_cuts_what_was_not_written_back_yet(self):
        path, other = self.paths()
        with open(path, "w+b", buffering=0) as f:
            f.write(b"a" * (3 * MIB))
            os.ftruncate(f.fileno(), 100_001)
            self.assertEqual(os.fstat(f.fileno()).st_size, 100_001)
            os.ftruncate(f.fileno(), 2 * MIB)
            f.seek(MIB)
            f.write(b"b" * 10)
        expected = b"a" * 100_001 + bytes(MIB - 100_001) + b"b" * 10 + bytes(MIB - 10)
        self.assertEqual(path.read_bytes(), expected)
        self.assertEqual(other.read_bytes(), expected)

    def test_mmap_writes_are_there_after_msync_and_close(self):
        path, other = self.paths()
        path.write_bytes(bytes(MIB))
        with open(path, "r+b") as f, mmap.mmap(f.fileno(), MIB) as m:
            m[5000:5010] = b"0123456789"
            m.flush()
            m[900_000:900_003] = b"end"
        expected = bytearray(MIB)
        expected[5000:5010], expected[900_000:900_003] = b"0123456789", b"end"
        self.assertEqual(other.read_bytes(), bytes(expected))

    def test_mtime_moves_with_writes_and_stays_as_it_was_set(self):
        path, other = self.paths()
        path.write_bytes(b"1")
        first = path.stat().st_mtime_ns
        time.sleep(0.05)
        with open(path, "r+b", buffering=0) as f:
            f.write(b"2")
            self.assertGreater(os.fstat(f.fileno()).st_mtime_ns, first)
        second = path.stat().st_mtime_ns
        self.assertGreater(second, first)
        self.assertLess(abs(other.stat().st_mtime_ns - second), 2 * 10**9)
        with open(path, "r+b", buffering=0) as f:
            f.write(b"3")  # not written back yet
            os.utime(path, (1_000_000, 2_000_000))
        self.assertEqual(path.stat().st_mtime, 2_000_000)
        time.sleep(1)
        self.assertEqual(other.stat().st_mtime, 2_000_000)

    def test_what_was_synced_survives_the_client(self):
        victim = self.cluster.mount("writeback", name=f"victim{time.monotonic_ns()}")
        name = self.id().rsplit(".", 1)[-1]
        f = OpenFile(victim / name)
        data = os.urandom(2 * MIB + 11)
        f.write(data)
        f.fsync()
        f.write(b"not synced", len(data))
        f.process.shutdown(wait=False)
        victim.kill()
        self.assertEqual((self.other / name).read_bytes()[:len(data)], data)

    def test_restarts_of_the_servers_cost_nothing(self):
        name = self.id().rsplit(".", 1)[-1]
        f = OpenFile(self.mount / name)
        data = os.urandom(4 * MIB)
        f.write(data[:MIB])
        f.fsync()
        f.write(data[MIB:], MIB)
        for daemon, start in (("mds", self.cluster.start_mds), ("brick", self.cluster.start_brick)):
            self.cluster.kill(daemon)
            start()
        f.fsync()
        f.close()
        self.assertEqual((self.other / name).read_bytes(), data)


if __name__ == "__main__":
    unittest.main()
