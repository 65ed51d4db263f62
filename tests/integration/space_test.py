#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What of a pool files can use: all of it, whatever their sizes; and that a sparse file stays sparse.

usage: space_test.py BIN_DIRECTORY
"""
import errno
import os
import random
import shutil
import subprocess
import sys
import unittest

from cluster import Cluster, wait_until

BIN = sys.argv.pop(1)
KIB, MIB = 1 << 10, 1 << 20
CHUNK = os.urandom(MIB)


class Space(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(BIN, pool_size="256M").start_all()
        self.mount = self.cluster.mount("actimeo=0")
        self.random = random.Random(15)

    def tearDown(self):
        self.mount.unmount()
        self.cluster.close()

    def free(self):
        status = os.statvfs(self.mount.path)
        return status.f_bavail * status.f_frsize

    def total(self):
        status = os.statvfs(self.mount.path)
        return status.f_blocks * status.f_frsize

    def settled(self):
        """What is free when no file's space ahead is on its way back any more."""
        before, after = None, self.free()
        while before != after:
            self.mount.wait_until_quiet()
            before, after = after, self.free()
        return after

    def write(self, path, size, step=MIB):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            while size:
                size -= os.write(descriptor, CHUNK[:min(size, step)])
        finally:
            os.close(descriptor)

    def fill(self, prefix, next_size):
        """Writes files until ENOSPC; returns how many there are."""
        for number in range(10**6):
            path = self.mount / f"{prefix}{number}"
            try:
                self.write(path, next_size())
            except OSError as error:
                self.assertEqual(error.errno, errno.ENOSPC)
                return number
        self.fail("the pool has no end")

    def fills(self, next_size, limit=5 * MIB):
        """Until ENOSPC; then again, when half of the files are gone."""
        for prefix in ("a", "b"):
            self.fill(prefix, next_size)
            left = self.settled()
            self.assertLess(left, limit, f"{left / MIB:.1f} MiB are free, and ENOSPC")
            names = sorted(name for name in os.listdir(self.mount.path) if name[0] in "ab")
            self.random.shuffle(names)
            removed = 0
            for name in names[:len(names) // 2]:
                removed += rounded(os.stat(self.mount / name).st_size)
                os.unlink(self.mount / name)
            wait_until(lambda: self.free() >= left + removed, 60, "what was removed is free")

    def test_files_of_203_kib(self):
        self.fills(lambda: 203 * KIB)

    def test_files_of_31_mib(self):
        self.fills(lambda: 31 * MIB)

    def test_files_of_random_sizes(self):
        self.fills(lambda: int(2 ** self.random.uniform(12, 24)))

    def test_files_of_100_bytes_in_what_a_large_one_leaves(self):
        self.write(self.mount / "large", self.total() - 3 * MIB)
        self.settled()
        self.fills(lambda: 100, limit=4096)

    def test_closed_files_keep_what_they_need(self):
        before = self.settled()
        sizes = (31 * MIB, 63 * MIB, 300_000)
        for size in sizes:
            self.write(self.mount / str(size), size, step=128 * KIB)
        self.assertEqual(before - self.settled(), sum(rounded(size) for size in sizes))

    def test_what_is_ahead_of_open_files_is_free_for_others(self):
        files = []
        for number in range(40):
            descriptor = os.open(self.mount / f"open{number}", os.O_WRONLY | os.O_CREAT, 0o644)
            files.append(descriptor)
            for _ in range(4):
                os.write(descriptor, CHUNK[:300_000])
        large = self.total() - 40 * 1_228_800 - 2 * MIB
        self.write(self.mount / "large", large)
        for descriptor in files:
            os.close(descriptor)
        self.assertEqual(os.stat(self.mount / "large").st_size, large)

    def test_a_byte_in_a_sparse_file(self):
        path = self.mount / "sparse"
        before = self.settled()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        os.ftruncate(descriptor, 20 << 30)
        os.pwrite(descriptor, b"x", 5 << 30)
        os.close(descriptor)
        self.assertEqual(before - self.settled(), 16 * KIB)

    @unittest.skipIf(shutil.which("mkfs.ext4") is None, "mkfs.ext4 is not installed")
    def test_a_file_system_in_a_sparse_file_and_random_writes_to_it(self):
        def image(path):
            with open(path, "wb") as file:
                file.truncate(20 << 30)
            subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "nodiscard", "-J", "size=32", str(path)], check=True)
            dice = random.Random(15)
            with open(path, "r+b", buffering=0) as file:
                for _ in range(1000):
                    os.pwrite(file.fileno(), CHUNK[:4 * KIB], dice.randrange((20 << 30) // (4 * KIB)) * 4 * KIB)
        local = self.cluster.home / "local.img"
        before = self.settled()
        image(self.mount / "image")
        image(local)
        taken = before - self.settled()
        # A local one has extents; what of it is not written is allocated as well.
        self.assertLess(taken, 1.2 * in_units(local, 16 * KIB))


def rounded(size):
    return (size + 4095) // 4096 * 4096


def in_units(path, unit):
    """What `path` has of disk blocks, in whole units of the file."""
    listing = subprocess.run(["filefrag", "-v", "-b4096", str(path)], check=True, capture_output=True, text=True).stdout
    units = set()
    for line in listing.splitlines():
        fields = line.split(":")
        if len(fields) > 2 and fields[0].strip().isdigit():
            first, last = (int(number) * 4096 for number in fields[1].split(".."))
            units.update(range(first // unit, last // unit + 1))
    return len(units) * unit


if __name__ == "__main__":
    unittest.main()
