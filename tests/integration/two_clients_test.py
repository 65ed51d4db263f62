#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two clients on one file: close-to-open, recalls, and no handle that outlives its layout.

usage: two_clients_test.py BIN_DIRECTORY
"""
import mmap
import os
import random
import sys
import threading
import time
import unittest

from cluster import Cluster

BIN = sys.argv.pop(1)
MIB = 1 << 20


class TwoClients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="1G", lease_seconds=5).start_all()
        cls.a, cls.b = cls.cluster.mount(name="a"), cls.cluster.mount(name="b")

    @classmethod
    def tearDownClass(cls):
        cls.a.unmount()
        cls.b.unmount()
        cls.cluster.close()

    def name(self):
        return self.id().rsplit(".", 1)[-1]

    def test_what_one_closes_the_other_opens(self):
        for i in range(20):
            data = os.urandom(200_000 + i)
            (self.a / self.name()).write_bytes(data)
            self.assertEqual((self.b / self.name()).read_bytes(), data)

    def test_an_open_sees_another_clients_size_though_the_file_is_open_here(self):
        path_a, path_b = self.a / self.name(), self.b / self.name()
        path_a.write_bytes(b"0" * 100)
        with open(path_a, "rb"):
            for size in (200, 50, 300_000, 0, 70_000):
                path_b.write_bytes(b"1" * size)
                self.assertEqual(path_a.read_bytes(), b"1" * size)

    def test_an_append_goes_behind_what_another_client_has_appended_meanwhile(self):
        for before in (0, 4 * MIB):
            path_a, path_b = self.a / f"{self.name()}.{before}", self.b / f"{self.name()}.{before}"
            path_a.write_bytes(bytes(before))
            mine = os.open(path_a, os.O_WRONLY | os.O_APPEND)
            for i in range(5):
                os.write(mine, b"a%d\n" % i)
                os.fsync(mine)
                with open(path_b, "ab") as other:
                    other.write(b"b%d\n" % i)
            os.close(mine)
            self.assertEqual(path_b.read_bytes()[before:], b"".join(b"a%d\nb%d\n" % (i, i) for i in range(5)))

    def test_an_append_goes_to_the_end_that_another_client_has_cut(self):
        path_a, path_b = self.a / self.name(), self.b / self.name()
        mine = os.open(path_a, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(mine, b"1" * 8192)
        os.fsync(mine)
        os.truncate(path_b, 100)
        os.write(mine, b"2" * 10)
        os.close(mine)
        self.assertEqual(path_b.read_bytes(), b"1" * 100 + b"2" * 10)

    def test_what_a_shared_mapping_changed_stays_in_its_place_though_the_file_is_open_for_append(self):
        import mmap
        path = self.a / self.name()
        path.write_bytes(b"x" * 8192)
        file = os.open(path, os.O_RDWR | os.O_APPEND)
        with mmap.mmap(file, 8192) as shared:
            shared[4096:4100] = b"yyyy"
            shared.flush()
        os.close(file)
        self.assertEqual((self.b / self.name()).read_bytes(), b"x" * 4096 + b"yyyy" + b"x" * 4092)

    def test_a_direct_descriptor_mapped_shared_shows_one_file_whichever_way_it_is_changed(self):
        release = tuple(int(part) for part in os.uname().release.split(".")[:2])
        if release < (6, 6):
            self.skipTest(f"Linux {os.uname().release} maps no direct descriptor shared: 6.6 does")
        blocks, size = 64, 4096
        model = bytearray(blocks * size)
        chance = random.Random(19)
        path = self.a / self.name()
        path.write_bytes(model)
        file = os.open(path, os.O_RDWR | os.O_DIRECT)
        self.addCleanup(os.close, file)
        mapped, buffer = mmap.mmap(file, len(model)), mmap.mmap(-1, size)
        for number in range(600):
            at = chance.randrange(blocks) * size
            choice = chance.randrange(4)
            if choice == 0:
                mapped[at:at + size] = model[at:at + size] = chance.randbytes(size)
            elif choice == 1:
                buffer[:] = model[at:at + size] = chance.randbytes(size)
                self.assertEqual(os.pwrite(file, buffer, at), size)
            elif choice == 2:
                self.assertEqual(mapped[at:at + size], model[at:at + size], f"mapped, operation {number}")
            else:
                self.assertEqual(os.preadv(file, [buffer], at), size)
                self.assertEqual(buffer[:], model[at:at + size], f"direct, operation {number}")
        mapped.flush()
        other = os.open(self.b / self.name(), os.O_RDONLY | os.O_DIRECT)
        for at in range(0, len(model), size):
            self.assertEqual(os.preadv(other, [buffer], at), size)
            self.assertEqual(buffer[:], model[at:at + size])
        os.close(other)
        mapped.close()

    def test_in_place_data_is_shared_while_both_hold_layouts(self):
        path_a, path_b = self.a / self.name(), self.b / self.name()
        path_a.write_bytes(bytes(4 * MIB))
        fa, fb = os.open(path_a, os.O_RDWR | os.O_DIRECT), os.open(path_b, os.O_RDWR | os.O_DIRECT)
        import mmap
        block, seen = mmap.mmap(-1, 4096), mmap.mmap(-1, 4096)
        for i in range(1, 50):
            block[:] = bytes([i]) * 4096
            os.pwrite(fa, block, (i % 8) * 4096)
            os.preadv(fb, [seen], (i % 8) * 4096)
            self.assertEqual(seen[:], block[:])
        os.close(fa)
        os.close(fb)

    def test_a_truncate_recalls_the_other_ones_layout(self):
        path_a, path_b = self.a / self.name(), self.b / self.name()
        path_a.write_bytes(b"a" * 8 * MIB)
        recalls = self.a.statistics()["recalls"]
        with open(path_a, "r+b", buffering=0) as f:
            f.write(b"A")  # a read-write layout is held from here on
            begin = time.monotonic()
            os.truncate(path_b, MIB)
            took = time.monotonic() - begin
            self.assertLess(took, self.cluster.lease_seconds, "the layout was returned, not waited out")
            self.assertEqual(path_b.stat().st_size, MIB)
            f.seek(0)
            self.assertEqual(f.read(2), b"Aa")
        self.assertGreater(self.a.statistics()["recalls"], recalls)
        os.truncate(path_b, 2 * MIB)
        self.assertEqual(path_b.read_bytes()[MIB:], bytes(MIB))

    def test_truncates_under_a_writing_client_never_deadlock_or_leak_old_bytes(self):
        path_a, path_b = self.a / self.name(), self.b / self.name()
        path_a.write_bytes(b"w" * 4 * MIB)
        stop = threading.Event()
        errors = []

        def writer():
            try:
                with open(path_a, "r+b", buffering=0) as f:
                    i = 0
                    while not stop.is_set():
                        f.seek((i % 64) * 65536)
                        f.write(b"w" * 65536)
                        i += 1
            except OSError as e:
                errors.append(e)
        thread = threading.Thread(target=writer)
        thread.start()
        for i in range(10):
            os.truncate(path_b, 100_000 * (i % 3))
            time.sleep(0.05)
        stop.set()
        thread.join(60)
        self.assertFalse(thread.is_alive())
        self.assertEqual(errors, [])
        self.assertEqual(set(path_b.read_bytes()) - {0, ord("w")}, set())

    def test_a_file_removed_by_one_stays_readable_to_the_other_that_has_it_open(self):
        path_a, path_b = self.a / self.name(), self.b / self.name()
        path_a.write_bytes(b"k" * 3 * MIB)
        with open(path_a, "rb", buffering=0) as f:
            self.assertEqual(f.read(10), b"k" * 10)
            path_b.unlink()
            self.assertEqual(f.read(10), b"k" * 10)
            self.assertEqual(os.pread(f.fileno(), 100, 2 * MIB), b"k" * 100)

    def test_names_made_by_one_are_seen_by_the_other(self):
        (self.a / self.name()).mkdir()
        for i in range(50):
            (self.a / self.name() / f"f{i}").write_text(str(i))
        self.assertEqual(len(os.listdir(self.b / self.name())), 50)
        os.rename(self.b / self.name() / "f1", self.b / self.name() / "renamed")
        time.sleep(1.1)  # entry caches of the other side
        self.assertIn("renamed", os.listdir(self.a / self.name()))

    def test_a_killed_clients_file_can_be_truncated_after_its_lease(self):
        victim = self.cluster.mount(name=f"victim{time.monotonic_ns()}")
        f = open(victim / self.name(), "wb", buffering=0)
        f.write(b"v" * 4 * MIB)
        os.fsync(f.fileno())
        f.write(b"uncommitted past the end" * 10_000)
        victim.kill()
        try:
            f.close()
        except OSError:
            pass
        path = self.b / self.name()
        begin = time.monotonic()
        os.truncate(path, 5 * MIB)
        self.assertLess(time.monotonic() - begin, 30)
        data = path.read_bytes()
        self.assertEqual(data[:4 * MIB], b"v" * 4 * MIB)
        self.assertEqual(data[4 * MIB:], bytes(MIB), "bytes that were never committed are not readable")


if __name__ == "__main__":
    unittest.main()
