#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Locks of a file of which a mount has a write delegation: it decides about them by itself, and the server has them before
anybody else can ask.

usage: delegated_locks_test.py BIN_DIRECTORY
"""
import concurrent.futures
import errno
import fcntl
import os
import signal
import sqlite3
import struct
import subprocess
import sys
import time
import unittest

from cluster import Cluster, OpenFile, wait_until
from lock_calls import denied, lock, ofd_lock, who_holds
from two_mounts import TwoMounts

BIN = sys.argv.pop(1)
LEASE = 5
SECONDS = 60  # for what should take a moment: sanitizers, a busy machine
OPTIONS = "actimeo=60,flush_after=0,layoutstats_timer=0"


def count_up(path, times):
    """Reads a number, adds one, writes it back, each time under a lock."""
    for _ in range(times):
        descriptor = os.open(path, os.O_RDWR)
        fcntl.lockf(descriptor, fcntl.LOCK_EX)
        number = int(os.pread(descriptor, 64, 0) or b"0")
        os.pwrite(descriptor, b"%d" % (number + 1), 0)
        fcntl.lockf(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def insert(path, who, times):
    for number in range(times):
        database = sqlite3.connect(path, timeout=SECONDS)
        with database:
            database.execute("insert into rows values (?, ?)", (who, number))
        database.close()


def open_and_close(path):
    os.close(os.open(path, os.O_RDWR))


def give_delegation(mount, name, content=b"content"):
    """A file of which the mount has a write delegation."""
    path = mount / name
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    granted = mount.wait_until_quiet()["delegations_granted_to_write"]

    def is_given():
        open_and_close(path)
        return mount.wait_until_quiet()["delegations_granted_to_write"] > granted

    wait_until(is_given, SECONDS, "the mount has a write delegation")
    return path


class DelegatedLocks(TwoMounts):
    bin = BIN
    daemons = {"pool_size": "512M", "lease_seconds": LEASE}
    options = OPTIONS

    def tearDown(self):
        if self._outcome.result.failures or self._outcome.result.errors:
            self.cluster.show_logs()

    def name(self):
        return self.id().rsplit(".", 1)[-1]

    def held(self, content=b"content"):
        return give_delegation(self.mount, self.name(), content)

    def open(self, path):
        file = OpenFile(path)
        self.addCleanup(file.close)
        return file

    def asked(self, mount=None):
        """LOCK, LOCKT, LOCKU so far."""
        operations = (mount or self.mount).statistics()["mds_operations"]
        return sum(operations.get(name, 0) for name in ("LOCK", "LOCKT", "LOCKU"))

    def test_processes_of_the_mount_exclude_one_another_and_nobody_is_asked(self):
        path = self.held()
        calls = self.mount.wait_until_quiet()["mds_calls"]
        a, b = self.open(path), self.open(path)
        a.call(lock, a.descriptor, fcntl.LOCK_EX, 10, 100)
        self.assertTrue(denied(b, fcntl.LOCK_SH, 1, 109))
        self.assertFalse(denied(b, fcntl.LOCK_EX, 100, 0))
        pid = a.call(os.getpid)
        self.assertEqual(b.call(who_holds, b.descriptor), (fcntl.F_WRLCK, 100, 10, pid))
        a.call(lock, a.descriptor, fcntl.LOCK_UN, 5, 100)
        self.assertFalse(denied(b, fcntl.LOCK_EX, 5, 100))
        self.assertTrue(denied(b, fcntl.LOCK_EX, 1, 105))
        waiting = b.start(lock, b.descriptor, fcntl.LOCK_EX)
        time.sleep(0.3)
        self.assertFalse(waiting.done())
        a.call(lock, a.descriptor, fcntl.LOCK_UN)
        waiting.result(SECONDS)
        self.assertTrue(denied(a, fcntl.LOCK_SH))
        self.assertEqual(self.mount.wait_until_quiet()["mds_calls"], calls)

    def test_flock_and_locks_of_open_files(self):
        path = self.held()
        a, b = self.open(path), self.open(path)
        asked = self.asked()
        a.call(fcntl.flock, a.descriptor, fcntl.LOCK_EX)
        with self.assertRaises(BlockingIOError):
            b.call(fcntl.flock, b.descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        waiting = b.start(fcntl.flock, b.descriptor, fcntl.LOCK_SH)
        a.call(fcntl.flock, a.descriptor, fcntl.LOCK_SH)
        waiting.result(SECONDS)
        a.call(fcntl.flock, a.descriptor, fcntl.LOCK_UN)
        b.call(fcntl.flock, b.descriptor, fcntl.LOCK_UN)
        a.call(ofd_lock, a.descriptor)
        with self.assertRaises(BlockingIOError):
            b.call(ofd_lock, b.descriptor)
        a.call(ofd_lock, a.descriptor, fcntl.F_UNLCK)
        b.call(ofd_lock, b.descriptor)
        self.assertEqual(self.asked(), asked)

    def test_a_process_that_dies_holds_nothing(self):
        path = self.held()
        code = ("import fcntl, os, struct, sys\nf = os.open(sys.argv[1], os.O_RDWR)\n"
                "{'posix': lambda: fcntl.lockf(f, fcntl.LOCK_EX), 'flock': lambda: fcntl.flock(f, fcntl.LOCK_EX),\n"
                " 'ofd': lambda: fcntl.fcntl(f, fcntl.F_OFD_SETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))\n"
                "}[sys.argv[2]]()\n"
                "print('locked', flush=True)\nsys.stdin.readline()")
        b = self.open(path)
        for kind in ("posix", "flock", "ofd"):
            with self.subTest(kind=kind):
                with subprocess.Popen([sys.executable, "-c", code, path, kind], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True) as child:
                    self.assertEqual(child.stdout.readline(), "locked\n")
                    self.assertTrue(denied(b))
                    child.kill()
                wait_until(lambda: not denied(b), SECONDS, "the lock is free")
                b.call(lock, b.descriptor, fcntl.LOCK_UN)

    def test_they_are_the_servers_before_another_host_has_the_file(self):
        path = self.held()
        a, c = self.open(path), self.open(path)
        a.call(lock, a.descriptor, fcntl.LOCK_EX, 10, 100)
        a.call(lock, a.descriptor, fcntl.LOCK_SH, 10, 200)
        c.call(lock, c.descriptor, fcntl.LOCK_SH, 10, 205)
        a.write(b"written under the lock", 100)
        b = self.open(self.other / path.name)
        self.assertTrue(denied(b, fcntl.LOCK_SH, 1, 105))
        self.assertTrue(denied(b, fcntl.LOCK_EX, 1, 214))
        self.assertFalse(denied(b, fcntl.LOCK_SH, 20, 200))
        self.assertFalse(denied(b, fcntl.LOCK_EX, 0, 300))
        b.call(lock, b.descriptor, fcntl.LOCK_UN)
        waiting = b.start(lock, b.descriptor, fcntl.LOCK_EX)
        time.sleep(0.3)
        self.assertFalse(waiting.done())
        a.call(lock, a.descriptor, fcntl.LOCK_UN)
        c.call(lock, c.descriptor, fcntl.LOCK_UN)
        waiting.result(SECONDS)
        self.assertEqual(b.read(22, 100), b"written under the lock")
        self.assertTrue(denied(a))

    def test_who_waits_here_goes_on_when_it_is_the_servers_lock(self):
        path = self.held()
        a, c = self.open(path), self.open(path)
        a.call(lock, a.descriptor, fcntl.LOCK_EX)
        waiting = c.start(lock, c.descriptor, fcntl.LOCK_EX)
        time.sleep(0.2)
        b = self.open(self.other / path.name)
        self.assertTrue(denied(b))
        self.assertFalse(waiting.done())
        a.call(lock, a.descriptor, fcntl.LOCK_UN)
        waiting.result(SECONDS)
        self.assertTrue(denied(b))
        c.call(lock, c.descriptor, fcntl.LOCK_UN)
        self.assertFalse(denied(b))

    def test_the_first_lock_asks_for_the_delegation(self):
        """By an OPEN in place of a LOCK: for a program that opens its file once, and locks it again and again."""
        path = self.mount / self.name()
        path.write_bytes(b"content")
        a = self.open(path)
        before = self.mount.wait_until_quiet()
        for _ in range(10):
            a.call(lock, a.descriptor, fcntl.LOCK_EX)
            a.call(lock, a.descriptor, fcntl.LOCK_UN)
        after = self.mount.wait_until_quiet()
        self.assertEqual(after["delegations_granted_to_write"], before["delegations_granted_to_write"] + 1)
        self.assertEqual(after["mds_calls"], before["mds_calls"] + 1)

    def test_a_lock_of_before_the_delegation_is_the_servers(self):
        path = self.mount / self.name()
        path.write_bytes(b"content")
        b = self.open(self.other / path.name)
        a = self.open(path)
        asked = self.asked()
        a.call(lock, a.descriptor, fcntl.LOCK_EX)  # no delegation: another has the file open
        self.assertEqual(self.asked(), asked + 1)
        self.assertTrue(denied(b))
        c = self.open(path)
        self.assertTrue(denied(c))
        a.call(lock, a.descriptor, fcntl.LOCK_UN)
        self.assertFalse(denied(c))

    def test_counters_of_processes_here_and_then_there(self):
        path = self.held(b"0")
        asked = self.asked()
        with concurrent.futures.ProcessPoolExecutor(8) as pool:
            for each in [pool.submit(count_up, path, 50) for _ in range(4)]:
                each.result(4 * SECONDS)
            self.assertEqual(self.asked(), asked)
            counting = [pool.submit(count_up, path, 50) for _ in range(4)]
            time.sleep(0.2)
            counting += [pool.submit(count_up, self.other / path.name, 25) for _ in range(2)]
            for each in counting:
                each.result(8 * SECONDS)
        self.assertEqual(path.read_bytes(), b"450")

    def test_a_database_of_processes_here_and_then_there(self):
        path = self.mount / self.name()
        with sqlite3.connect(path) as database:
            database.execute("create table rows (host text, number integer)")
        database.close()
        with concurrent.futures.ProcessPoolExecutor(8) as pool:
            writers = [pool.submit(insert, path, who, 30) for who in ("a", "b", "c")]
            time.sleep(0.5)
            writers.append(pool.submit(insert, self.other / path.name, "d", 20))
            for each in writers:
                each.result(8 * SECONDS)
        for mount in (self.mount, self.other):
            database = sqlite3.connect(mount / path.name)
            self.assertEqual(database.execute("select host, count(distinct number) from rows group by host").fetchall(),
                             [("a", 30), ("b", 30), ("c", 30), ("d", 20)])
            self.assertEqual(database.execute("pragma integrity_check").fetchone(), ("ok",))
            database.close()

    def test_a_restart_of_the_server(self):
        path = self.held()
        a = self.open(path)
        a.call(lock, a.descriptor, fcntl.LOCK_EX, 10, 0)
        self.cluster.kill("mds")
        self.cluster.start_mds()
        a.call(lock, a.descriptor, fcntl.LOCK_EX, 10, 100)
        b = self.open(self.other / path.name)
        self.assertTrue(denied(b, fcntl.LOCK_EX, 1, 5))
        self.assertTrue(denied(b, fcntl.LOCK_EX, 1, 105))
        self.assertFalse(denied(b, fcntl.LOCK_EX, 1, 10))
        a.write(b"still mine")
        a.call(lock, a.descriptor, fcntl.LOCK_UN)
        self.assertFalse(denied(b))

    def test_after_a_reboot_of_the_servers_host_the_delegation_is_reclaimed_and_they_stay(self):
        path = self.held()
        a = self.open(path)
        a.call(lock, a.descriptor, fcntl.LOCK_EX, 10, 0)
        asked = self.asked()
        self.cluster.kill("mds")
        # What a failed sync leaves behind: the next start is one of another boot.
        (self.cluster.home / "mds" / "metadata" / "sync-failed").write_text("0123456789abcdef\n")
        self.cluster.start_mds()
        c = self.open(path)
        self.assertTrue(denied(c, fcntl.LOCK_SH, 1, 5))
        a.call(lock, a.descriptor, fcntl.LOCK_SH, 10, 100)
        self.assertEqual(self.asked(), asked)
        b = self.open(self.other / path.name)
        self.assertTrue(denied(b, fcntl.LOCK_SH, 1, 5))
        self.assertTrue(denied(b, fcntl.LOCK_EX, 1, 105))
        self.assertFalse(denied(b, fcntl.LOCK_SH, 1, 105))
        b.call(lock, b.descriptor, fcntl.LOCK_UN)
        a.write(b"still mine")
        a.call(lock, a.descriptor, fcntl.LOCK_UN)
        self.assertFalse(denied(b))


class LostLocks(unittest.TestCase):
    def test_who_lost_a_lock_is_told_by_errors_until_he_unlocks(self):
        with Cluster(BIN, pool_size="256M", lease_seconds=LEASE) as cluster:
            cluster.start_all()
            a, b = cluster.mount(OPTIONS, name="a"), cluster.mount(name="b")
            path = give_delegation(a, "f")
            first, second = OpenFile(path), None
            first.call(lock, first.descriptor, fcntl.LOCK_EX)
            a.process.send_signal(signal.SIGSTOP)
            try:
                second = OpenFile(b / "f")  # when it has been revoked
                second.call(lock, second.descriptor, fcntl.LOCK_EX)
                second.write(b"CONTENT")
            finally:
                a.process.send_signal(signal.SIGCONT)
            wait_until(lambda: "locks-lost" in cluster.log("a"), SECONDS, "the mount says so")
            for use in (lambda: first.write(b"x"), lambda: first.call(lock, first.descriptor, fcntl.LOCK_EX)):
                with self.assertRaises(OSError) as raised:
                    use()
                self.assertEqual(raised.exception.errno, errno.EIO)
            second.close()
            first.call(lock, first.descriptor, fcntl.LOCK_UN)
            first.call(lock, first.descriptor, fcntl.LOCK_EX)
            self.assertEqual(first.read(7), b"CONTENT")
            first.write(b"x")
            self.assertEqual(cluster.log("a").count("locks-lost"), 1)
            first.close()
            a.unmount()
            b.unmount()


if __name__ == "__main__":
    unittest.main(verbosity=2)
