#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Locks and renames with flags by libpnfsrdma: with a connection to the server, through a mount, and beside the kernel's own.

usage: library_locks_test.py BIN_DIRECTORY
"""
import errno
import fcntl
import multiprocessing
import os
import signal
import struct
import threading
import time
import unittest

from library_case import Case, pnfsrdma  # first: see there
import cluster

SHARED, EXCLUSIVE = pnfsrdma.LOCK_SHARED, pnfsrdma.LOCK_EXCLUSIVE
LEASE = 5


def hold(source, told, orders):
    """In a process of its own: locks, and then does what it is told."""
    with pnfsrdma.connect(source) as client, client.open("file", os.O_RDWR) as file:
        file.lock(EXCLUSIVE, 0, 100)
        told.send("locked")
        while (order := orders.recv()) != "end":
            try:
                result = {"write": lambda: file.pwrite(b"held", 0), "read": lambda: file.pread(4, 0), "unlock": file.unlock, "lock": file.lock}[order]()
                told.send((0, result))
            except OSError as error:
                told.send((error.errno, None))


class Locks(Case):
    options = {"lease_seconds": LEASE}

    def setUp(self):
        super().setUp()
        self.mount = self.cluster.mount()
        self.other = pnfsrdma.connect(self.source)
        self.mounted = pnfsrdma.connect(str(self.mount.path))
        self.clients = [self.client, self.other, self.mounted]
        with self.client.open("file", os.O_RDWR | os.O_CREAT, 0o666) as file:
            file.pwrite(bytes(1000), 0)
            file.fsync()

    def tearDown(self):
        for client in self.clients:
            client.close()
        self.mount.unmount()

    def assert_locked(self, file, *arguments):
        self.assertFalse(file.may_lock(*arguments))
        self.assert_fails(errno.EAGAIN, lambda: file.lock(*arguments, timeout=0))

    def pairs(self):
        for one in self.clients:
            for other in self.clients:
                with one.open("file", os.O_RDWR) as first, other.open("file", os.O_RDWR) as second:
                    yield first, second

    def test_two_open_files(self):
        for one, two in self.pairs():
            one.lock(EXCLUSIVE, 0, 100)
            self.assert_locked(two, EXCLUSIVE, 99, 1)
            self.assert_locked(two, SHARED, 0, 0)
            two.lock(EXCLUSIVE, 100, 0, timeout=0)
            self.assert_locked(one, SHARED, 2**62, 1)
            one.lock(SHARED, 50, 50, timeout=0)  # its own are no obstacle
            two.lock(SHARED, 60, 20, timeout=0)
            self.assert_locked(two, EXCLUSIVE, 60, 20)
            self.assert_locked(two, SHARED, 40, 20)
            one.unlock(0, 50)
            two.lock(EXCLUSIVE, 0, 50, timeout=0)
            two.unlock()
            self.assertTrue(one.may_lock(EXCLUSIVE, 100, 0))
            one.lock(timeout=0)
            one.unlock()
            self.assertTrue(two.may_lock())

    def test_a_close_unlocks(self):
        for one, two in self.pairs():
            one.lock()
            self.assert_locked(two)
            one.close()
            two.lock(timeout=0)

    def test_who_waits_gets_it_when_it_is_free(self):
        for one, two in self.pairs():
            one.lock(EXCLUSIVE, 0, 10)
            began = time.monotonic()
            self.assert_fails(errno.EAGAIN, lambda two=two: two.lock(EXCLUSIVE, 0, 10, timeout=0.3))
            self.assertGreater(time.monotonic() - began, 0.3)
            got = threading.Thread(target=two.lock, args=(EXCLUSIVE, 0, 10))
            got.start()
            time.sleep(0.2)
            self.assertTrue(got.is_alive())
            one.unlock(0, 10)
            got.join(20)
            self.assertFalse(got.is_alive())
            self.assertFalse(one.may_lock(EXCLUSIVE, 0, 10))

    def test_beside_locks_of_the_kernel(self):
        descriptor = os.open(self.mount.path / "file", os.O_RDWR)
        for client in self.clients:
            with client.open("file", os.O_RDWR) as file:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 100)
                self.assert_locked(file, EXCLUSIVE, 105, 1)
                file.lock(EXCLUSIVE, 0, 100, timeout=0)
                with self.assertRaises(BlockingIOError):
                    fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, 10, 50)
                fcntl.lockf(descriptor, fcntl.LOCK_UN, 0, 0)
                self.assertTrue(file.may_lock())
        os.close(descriptor)

    def test_what_is_no_lock_is_refused(self):
        for client in self.clients:
            with client.open("file") as file:
                file.lock(SHARED, timeout=0)
                self.assert_fails(errno.EBADF, file.lock, EXCLUSIVE)
                for arguments in ((2, 0, 1), (SHARED, -1, 1), (SHARED, 0, -1)):
                    self.assert_fails(errno.EINVAL, file.lock, *arguments)
                    self.assert_fails(errno.EINVAL, file.may_lock, *arguments)
                self.assert_fails(errno.EOVERFLOW, file.lock, SHARED, 2**62, 2**63 - 1)
                self.assert_fails(errno.EINVAL, file.unlock, -1)
            with client.open("file", os.O_WRONLY) as file:
                self.assert_fails(errno.EBADF, file.lock, SHARED)
                file.lock(EXCLUSIVE, timeout=0)

    def test_who_has_the_lock_sees_what_the_one_before_has_written(self):
        """A number in the file's last eight bytes, which all make longer by the next one under the lock."""
        for client in self.clients:
            client.unlink("file") if client is self.client else None
        with self.client.open("file", os.O_RDWR | os.O_CREAT) as file:
            file.pwrite(struct.pack("<Q", 0), 0)
            file.fsync()

        def count(client):
            with client.open("file", os.O_RDWR) as file:
                for _ in range(20):
                    file.lock()
                    size = file.stat().size
                    last, = struct.unpack("<Q", file.pread(8, size - 8))
                    file.pwrite(struct.pack("<Q", last + 1), size)
                    file.fdatasync()
                    file.unlock()
        threads = [threading.Thread(target=count, args=(client,)) for client in self.clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        content = (self.mount.path / "file").read_bytes()
        self.assertEqual(list(struct.unpack(f"<{len(content) // 8}Q", content)), list(range(61)))

    def holder(self):
        context = multiprocessing.get_context("fork")
        told, tells = context.Pipe(False)
        orders, order = context.Pipe(False)
        process = context.Process(target=hold, args=(self.source, tells, orders))
        process.start()
        self.assertEqual(told.recv(), "locked")
        return process, told, order

    def test_a_restart_of_the_server_costs_no_lock(self):
        with self.client.open("file", os.O_RDWR) as file, self.other.open("file", os.O_RDWR) as second, self.mounted.open("file", os.O_RDWR) as third:
            file.lock(EXCLUSIVE, 0, 100)
            file.lock(SHARED, 200, 100)
            for _ in range(2):
                self.cluster.kill("mds")
                self.cluster.start_mds()
                for one in (second, third):
                    self.assert_locked(one, EXCLUSIVE, 50, 1)
                    self.assert_locked(one, EXCLUSIVE, 299, 1)
                    one.lock(SHARED, 250, 10, timeout=30)  # behind the grace period
                    one.unlock()
                file.pwrite(b"mine", 0)
            file.unlock()
            second.lock(timeout=0)

    def test_who_was_away_too_long_has_lost_his_locks_and_is_told(self):
        process, told, order = self.holder()
        os.kill(process.pid, signal.SIGSTOP)
        with self.client.open("file", os.O_RDWR) as file:
            cluster.wait_until(lambda: file.may_lock(EXCLUSIVE, 0, 100), 6 * LEASE, "the lease is over")
            file.lock(EXCLUSIVE, 0, 100, timeout=10)
            file.pwrite(b"ours", 0)
            file.fdatasync()
            os.kill(process.pid, signal.SIGCONT)

            def ask(what):
                order.send(what)
                return told.recv()
            cluster.wait_until(lambda: ask("write")[0] == errno.EIO, 30, "it hears of that")
            self.assertEqual([ask(what)[0] for what in ("read", "write", "lock")], [errno.EIO] * 3)
            self.assertEqual(ask("unlock")[0], 0)
            self.assertEqual(ask("read"), (0, file.pread(4, 0)))
            file.unlock()
            self.assertEqual(ask("lock")[0], 0)
            self.assertFalse(file.may_lock())
        order.send("end")
        process.join(20)
        self.assertEqual(process.exitcode, 0)

    def test_renames_with_flags(self):
        for client in self.clients:
            for name in ("a", "b"):
                with client.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC) as file:
                    file.pwrite(name.encode(), 0)
                    file.fsync()
            client.mkdir("d")
            self.assert_fails(errno.EEXIST, client.rename, "a", "b", pnfsrdma.RENAME_NOREPLACE)
            self.assert_fails(errno.EEXIST, client.rename, "a", "a", pnfsrdma.RENAME_NOREPLACE)
            self.assert_fails(errno.ENOENT, client.rename, "absent", "c", pnfsrdma.RENAME_NOREPLACE)
            client.rename("a", "d/c", pnfsrdma.RENAME_NOREPLACE)
            self.assert_fails(errno.ENOENT, client.stat, "a")
            client.rename("d/c", "b", pnfsrdma.RENAME_EXCHANGE)
            for name, wanted in (("b", b"a"), ("d/c", b"b")):
                with client.open(name) as file:
                    self.assertEqual(file.pread(1, 0), wanted)
            client.rename("b", "d", pnfsrdma.RENAME_EXCHANGE)
            self.assertEqual(client.listdir("b"), ["c"])
            self.assert_fails(errno.ENOENT, client.rename, "d", "absent", pnfsrdma.RENAME_EXCHANGE)
            self.assert_fails(errno.EINVAL, client.rename, "b", "b/c", pnfsrdma.RENAME_EXCHANGE)
            self.assert_fails(errno.ENOTDIR, client.rename, "b", "d/", pnfsrdma.RENAME_EXCHANGE)
            self.assert_fails(errno.EINVAL, client.rename, "b", "d", 3)
            client.unlink("b/c")
            client.rmdir("b")
            client.unlink("d")


if __name__ == "__main__":
    unittest.main()
