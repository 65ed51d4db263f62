#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small writes that a mount answers before it has sent them, under a write delegation: what they spare, that nobody sees
anything else because of it, and what is left of them when something dies.

usage: held_write_test.py BIN_DIRECTORY
"""
import concurrent.futures
import mmap
import os
import signal
import sys
import time
import unittest

from cluster import OpenFile, wait_until
from two_mounts import TwoMounts

BIN = sys.argv.pop(1)
LEASE = 3
SECONDS = 20


class HeldWrites(TwoMounts):
    bin = BIN
    daemons = {"pool_size": "512M", "lease_seconds": LEASE}
    options = "flush_after=0,layoutstats_timer=0"

    def setUp(self):
        super().setUp()
        self.path = self.mount / self.id().rsplit(".", 1)[-1]
        self.there = self.other / self.path.name
        self.descriptors = []

    def tearDown(self):
        for descriptor in self.descriptors:
            os.close(descriptor)
        super().tearDown()

    def count(self, name):
        return self.mount.statistics()[name]

    def create(self, content, path=None):
        """A new file that is open, and whose bytes are still on this host."""
        before = self.count("held_writes"), self.count("mds_writes")
        descriptor = os.open(path or self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        self.descriptors.append(descriptor)
        os.write(descriptor, content)
        self.assertEqual((self.count("held_writes"), self.count("mds_writes")), (before[0] + 1, before[1]))
        return descriptor

    def test_many_are_one_call_at_fsync(self):
        descriptor = self.create(b"0" * 100)
        writes = self.count("mds_writes")
        for number in range(1, 30):
            os.write(descriptor, str(number % 10).encode() * 100)
        os.fsync(descriptor)
        self.assertEqual(self.count("mds_writes"), writes + 1)
        self.assertEqual(self.there.read_bytes(), b"".join(str(n % 10).encode() * 100 for n in range(30)))

    def test_another_host_that_opens_it_reads_them(self):
        self.create(b"held")
        self.assertEqual(self.there.read_bytes(), b"held")

    def test_another_host_that_looks_sees_its_length(self):
        self.create(bytes(1234))
        self.assertEqual(self.there.stat().st_size, 1234)

    def test_another_host_that_writes_writes_behind_them(self):
        descriptor = self.create(b"aaaa")
        there = os.open(self.there, os.O_RDWR)
        os.pwrite(there, b"bb", 1)
        os.close(there)
        os.pwrite(descriptor, b"c", 3)
        os.fsync(descriptor)
        self.assertEqual(self.there.read_bytes(), b"abbc")

    def test_this_host_reads_them_by_every_door(self):
        self.create(b"held" * 1024)
        self.assertEqual(self.path.read_bytes(), b"held" * 1024)
        self.assertEqual(self.path.stat().st_size, 4096)
        direct = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
        self.descriptors.append(direct)
        with mmap.mmap(-1, 4096) as page:
            self.assertEqual(os.preadv(direct, [page], 0), 4096)
            self.assertEqual(bytes(page), b"held" * 1024)

    def test_times_that_are_set_behind_a_write_stay(self):
        descriptor = self.create(b"held")
        os.utime(descriptor, ns=(10**18, 10**18))
        os.close(self.descriptors.pop())
        for path in (self.path, self.there):
            self.assertEqual(path.stat().st_mtime_ns, 10**18)

    def test_what_is_closed_is_at_the_server(self):
        self.create(b"closed")
        os.close(self.descriptors.pop())
        self.mount.process.send_signal(signal.SIGSTOP)
        try:
            self.assertEqual(self.there.read_bytes(), b"closed")
        finally:
            self.mount.process.send_signal(signal.SIGCONT)

    def test_what_is_not_is_there_a_second_later(self):
        self.create(b"written")
        writes = self.count("mds_writes")
        wait_until(lambda: self.count("mds_writes") == writes + 1, SECONDS, "it is sent")

    def test_files_that_are_removed_while_they_hold_something(self):
        self.create(b"gone")
        writes = self.count("mds_writes")
        os.unlink(self.path)
        os.write(self.descriptors[0], b" by now")
        self.assertEqual(os.fstat(self.descriptors[0]).st_size, 11)
        os.close(self.descriptors.pop())
        self.assertLessEqual(self.count("mds_writes"), writes + 1)
        self.assertFalse(self.there.exists())

    def test_several_processes_that_append_to_logs_of_their_own(self):
        def log(number):
            path = self.mount / f"log.{number}"
            with open(path, "ab", buffering=0) as file:
                for line in range(200):
                    file.write(f"{line:08}\n".encode())
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(log, range(4)))
        for number in range(4):
            self.assertEqual((self.other / f"log.{number}").read_bytes(),
                             b"".join(f"{line:08}\n".encode() for line in range(200)))

    def created_elsewhere(self, content):
        """The same by a process of its own, since this one starts daemons."""
        before = self.count("held_writes")
        file = OpenFile(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        file.write(content)
        self.assertEqual(self.count("held_writes"), before + 1)
        return file

    def test_a_restart_of_the_server(self):
        file = self.created_elsewhere(b"through a restart")
        self.cluster.kill("mds")
        self.cluster.start_mds()
        file.fsync()
        self.assertEqual(self.there.read_bytes(), b"through a restart")
        file.close()

    def test_a_reboot_of_the_servers_host(self):
        file = self.created_elsewhere(b"through a reboot")
        self.cluster.kill("mds")
        # What a failed sync leaves behind: the next start is one of another boot.
        (self.cluster.home / "mds" / "metadata" / "sync-failed").write_text("0123456789abcdef\n")
        self.cluster.start_mds()
        file.fsync()
        self.assertEqual(self.there.read_bytes(), b"through a reboot")
        file.close()

    def test_a_host_that_is_stopped_while_another_one_wants_the_file(self):
        """Its bytes do not come over those of the other one, and it is told."""
        descriptor = self.create(b"lost")
        self.mount.process.send_signal(signal.SIGSTOP)
        try:
            with open(self.there, "wb", buffering=0) as there:  # when the delegation has been revoked
                there.write(b"new!")
        finally:
            self.mount.process.send_signal(signal.SIGCONT)
        with self.assertRaises(OSError):
            os.fsync(descriptor)
        time.sleep(1.5)
        self.assertEqual(self.there.read_bytes(), b"new!")
        os.pwrite(descriptor, b"mine", 0)
        os.fsync(descriptor)
        self.assertEqual(self.there.read_bytes(), b"mine")


if __name__ == "__main__":
    unittest.main(verbosity=2)
