#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Byte-range locks and flock through the MDS: processes of two mounts exclude one another, and see what the other wrote.

usage: locks_test.py BIN_DIRECTORY
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

BIN = sys.argv.pop(1)
LEASE = 5
SECONDS = 60  # for what should take a moment: sanitizers, a busy machine


def count_up(path, times, whole_file):
    """Reads a number, adds one, writes it back, each time under a lock."""
    descriptor = os.open(path, os.O_RDWR)
    for _ in range(times):
        (fcntl.flock if whole_file else fcntl.lockf)(descriptor, fcntl.LOCK_EX)
        number = int(os.pread(descriptor, 64, 0) or b"0")
        os.pwrite(descriptor, b"%d" % (number + 1), 0)
        (fcntl.flock if whole_file else fcntl.lockf)(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def append_line(path, line, times):
    """Each adds lines behind what it sees as the end of the file."""
    for i in range(times):
        with open(path, "r+b", buffering=0) as f:
            fcntl.lockf(f, fcntl.LOCK_EX)
            f.seek(0, os.SEEK_END)
            f.write(b"%s %d\n" % (line, i))


def wait_with_alarm(path, seconds):
    """F_SETLKW, interrupted by a signal whose handler raises."""
    def ring(number, frame):
        raise InterruptedError
    signal.signal(signal.SIGALRM, ring)
    descriptor = os.open(path, os.O_RDWR)
    signal.alarm(seconds)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX)
        return "locked"
    except InterruptedError:
        return "interrupted"
    finally:
        signal.alarm(0)
        os.close(descriptor)


def transfer(path, times, seed):
    """Moves money between two accounts; the sum never changes."""
    done = 0
    while done < times:
        database = sqlite3.connect(path, timeout=SECONDS, isolation_level=None)
        try:
            database.execute("BEGIN IMMEDIATE")
            database.execute("UPDATE account SET money = money - ? WHERE id = 1", (seed,))
            database.execute("UPDATE account SET money = money + ? WHERE id = 2", (seed,))
            database.execute("INSERT INTO journal (who, number) VALUES (?, ?)", (seed, done))
            database.execute("COMMIT")
            done += 1
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
        finally:
            database.close()
    return done


class Locks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="512M", lease_seconds=LEASE).start_all()
        cls.a, cls.b = cls.cluster.mount(name="a"), cls.cluster.mount(name="b")

    def tearDown(self):
        if self._outcome.result.failures or self._outcome.result.errors:
            self.cluster.show_logs()

    @classmethod
    def tearDownClass(cls):
        cls.a.unmount()
        cls.b.unmount()
        cls.cluster.close()

    def both(self):
        """The same file, opened by a process of each mount."""
        name = self.id().rsplit(".", 1)[-1]
        with open(self.a / name, "wb") as file:  # synced: a loss would be told to whoever has it open
            file.write(b"content")
            file.flush()
            os.fsync(file.fileno())
        pair = OpenFile(self.a / name), OpenFile(self.b / name)
        for f in pair:
            self.addCleanup(f.close)
        return pair

    def test_the_mount_says_that_its_locks_are_shared(self):
        self.assertIn("local_lock=none", self.cluster.log("a"))

    def test_a_range_that_one_mount_holds_is_denied_to_the_other(self):
        a, b = self.both()
        a.call(lock, a.descriptor, fcntl.LOCK_EX, 10, 100)
        self.assertTrue(denied(b, fcntl.LOCK_SH, 1, 109))
        self.assertEqual(b.call(who_holds, b.descriptor)[:3], (fcntl.F_WRLCK, 100, 10))
        self.assertFalse(denied(b, fcntl.LOCK_EX, 100, 0))
        self.assertFalse(denied(b, fcntl.LOCK_EX, 0, 110))
        a.call(lock, a.descriptor, fcntl.LOCK_UN, 5, 100)
        self.assertFalse(denied(b, fcntl.LOCK_EX, 5, 100))
        self.assertTrue(denied(b, fcntl.LOCK_EX, 1, 105))
        self.assertEqual(a.call(who_holds, a.descriptor, fcntl.F_RDLCK, 200, 0)[:3], (fcntl.F_WRLCK, 110, 0))

    def test_readers_share_and_a_writer_waits(self):
        a, b = self.both()
        a.call(lock, a.descriptor, fcntl.LOCK_SH)
        self.assertFalse(denied(b, fcntl.LOCK_SH))
        self.assertTrue(denied(b, fcntl.LOCK_EX))
        told = self.b.statistics()["mds_callbacks"]
        waiting = b.start(lock, b.descriptor, fcntl.LOCK_EX)
        time.sleep(0.3)
        self.assertFalse(waiting.done())
        a.call(lock, a.descriptor, fcntl.LOCK_UN)
        waiting.result(SECONDS)
        self.assertTrue(denied(a, fcntl.LOCK_SH))
        self.assertGreater(self.b.statistics()["mds_callbacks"], told)  # CB_NOTIFY_LOCK

    def test_flock_is_a_lock_on_the_whole_file(self):
        a, b = self.both()
        a.call(fcntl.flock, a.descriptor, fcntl.LOCK_EX)
        with self.assertRaises(BlockingIOError):
            b.call(fcntl.flock, b.descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        waiting = b.start(fcntl.flock, b.descriptor, fcntl.LOCK_SH)
        a.call(fcntl.flock, a.descriptor, fcntl.LOCK_SH)
        waiting.result(SECONDS)
        a.call(fcntl.flock, a.descriptor, fcntl.LOCK_UN)
        b.call(fcntl.flock, b.descriptor, fcntl.LOCK_EX)

    def test_a_process_that_closes_or_dies_holds_nothing(self):
        a, b = self.both()
        path = self.a / self.id().rsplit(".", 1)[-1]
        code = ("import fcntl, os, struct, sys\nf = os.open(sys.argv[1], os.O_RDWR)\n"
                "{'posix': lambda: fcntl.lockf(f, fcntl.LOCK_EX), 'flock': lambda: fcntl.flock(f, fcntl.LOCK_EX),\n"
                " 'ofd': lambda: fcntl.fcntl(f, fcntl.F_OFD_SETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))\n"
                "}[sys.argv[2]]()\n"
                "print('locked', flush=True)\nsys.stdin.readline()\n"
                "os.close(os.open(sys.argv[1], os.O_RDONLY)) if sys.argv[2] == 'posix' else os.close(f)\n"
                "print('closed', flush=True)\nsys.stdin.readline()")
        for kind in ("posix", "flock", "ofd"):
            for end in ("close", "kill"):
                with self.subTest(kind=kind, end=end):
                    child = subprocess.Popen([sys.executable, "-c", code, path, kind], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, text=True)
                    self.assertEqual(child.stdout.readline(), "locked\n")
                    self.assertTrue(denied(b))
                    if end == "close":
                        child.stdin.write("\n")
                        child.stdin.flush()
                        self.assertEqual(child.stdout.readline(), "closed\n")
                    else:
                        child.kill()
                        child.wait()
                    # The last close of an open file is told to the file system without anybody waiting for it.
                    wait_until(lambda: not denied(b), SECONDS, "the lock is free")
                    b.call(lock, b.descriptor, fcntl.LOCK_UN)
                    child.kill()
                    child.communicate()

    def test_a_lock_of_an_open_file_lives_as_long_as_that(self):
        a, b = self.both()
        a.call(ofd_lock, a.descriptor)
        other = a.call(os.open, self.a / self.id().rsplit(".", 1)[-1], os.O_RDWR)
        with self.assertRaises(BlockingIOError):
            a.call(ofd_lock, other)
        a.call(os.close, a.call(os.dup, a.descriptor))
        a.call(os.close, other)
        time.sleep(0.3)
        self.assertTrue(denied(b))
        a.call(ofd_lock, a.descriptor, fcntl.F_UNLCK)
        self.assertFalse(denied(b))

    def test_a_lock_of_a_process_survives_an_open_file_that_it_closed_before(self):
        a, b = self.both()
        for _ in range(20):
            first = a.call(os.open, self.a / self.id().rsplit(".", 1)[-1], os.O_RDWR)
            a.call(lock, first, fcntl.LOCK_EX)
            a.call(os.close, first)
            a.call(lock, a.descriptor, fcntl.LOCK_EX)
        time.sleep(0.3)  # nobody waits for the release of the first
        self.assertTrue(denied(b))

    def test_more_wait_than_the_mount_has_workers(self):
        a, b = self.both()
        path = self.b / self.id().rsplit(".", 1)[-1]
        (self.a / path.name).write_bytes(b"0")
        a.call(lock, a.descriptor, fcntl.LOCK_EX)
        with concurrent.futures.ProcessPoolExecutor(24) as pool:
            waiting = [pool.submit(count_up, path, 1, i % 2 == 1) for i in range(24)]
            time.sleep(1)
            self.assertEqual(b.read(64), b"0")
            a.call(lock, a.descriptor, fcntl.LOCK_UN)
            for each in waiting:
                each.result(SECONDS)
        self.assertEqual((self.a / path.name).read_bytes(), b"24")

    def test_a_signal_ends_the_wait(self):
        a, b = self.both()
        path = self.b / self.id().rsplit(".", 1)[-1]
        a.call(lock, a.descriptor, fcntl.LOCK_EX)
        began = time.monotonic()
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            self.assertEqual(pool.submit(wait_with_alarm, path, 1).result(SECONDS), "interrupted")
        self.assertLess(time.monotonic() - began, 30)
        a.call(lock, a.descriptor, fcntl.LOCK_UN)
        self.assertFalse(denied(b))

    def test_whoever_has_the_lock_sees_what_the_one_before_wrote(self):
        for whole_file in (False, True):
            with self.subTest(flock=whole_file):
                name = f"{self.id().rsplit('.', 1)[-1]}-{whole_file}"
                (self.a / name).write_bytes(b"0")
                with concurrent.futures.ProcessPoolExecutor(4) as pool:
                    counting = [pool.submit(count_up, mount / name, 100, whole_file)
                                for mount in (self.a, self.b, self.a, self.b)]
                    for each in counting:
                        each.result(4 * SECONDS)
                self.assertEqual((self.a / name).read_bytes(), b"400")

    def test_files_that_grow_under_locks_lose_nothing(self):
        name = self.id().rsplit(".", 1)[-1]
        (self.a / name).touch()
        with concurrent.futures.ProcessPoolExecutor(4) as pool:
            writing = [pool.submit(append_line, mount / name, who, 50)
                       for mount, who in ((self.a, b"a"), (self.b, b"b"), (self.a, b"c"), (self.b, b"d"))]
            for each in writing:
                each.result(4 * SECONDS)
        lines = (self.b / name).read_bytes().splitlines()
        self.assertEqual(sorted(lines), sorted(b"%s %d" % (who, i) for who in (b"a", b"b", b"c", b"d") for i in range(50)))

    def test_sqlite_on_two_mounts_at_once(self):
        name = self.id().rsplit(".", 1)[-1]
        database = sqlite3.connect(self.a / name)
        database.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, money INTEGER)")
        database.execute("CREATE TABLE journal (who INTEGER, number INTEGER)")
        database.execute("INSERT INTO account VALUES (1, 1000), (2, 1000)")
        database.commit()
        database.close()
        with concurrent.futures.ProcessPoolExecutor(4) as pool:
            moving = [pool.submit(transfer, mount / name, 25, seed)
                      for mount, seed in ((self.a, 1), (self.b, 2), (self.a, 3), (self.b, 4))]
            for each in moving:
                self.assertEqual(each.result(8 * SECONDS), 25)
        for mount in (self.a, self.b):
            database = sqlite3.connect(mount / name)
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            moved = 25 * (1 + 2 + 3 + 4)
            self.assertEqual(database.execute("SELECT money FROM account ORDER BY id").fetchall(),
                             [(1000 - moved,), (1000 + moved,)])
            self.assertEqual(database.execute("SELECT count(*) FROM journal").fetchall(), [(100,)])
            database.close()

    def test_local_lock_keeps_them_on_this_host(self):
        name = self.id().rsplit(".", 1)[-1]
        (self.a / name).touch()
        local = self.cluster.mount(options="local_lock=posix", name="local")
        a, c = OpenFile(self.a / name), OpenFile(local / name)
        a.call(lock, a.descriptor, fcntl.LOCK_EX)
        self.assertFalse(denied(c))
        with self.assertRaises(BlockingIOError):
            c.call(fcntl.flock, c.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        a.close()
        c.close()
        local.unmount()

    def test_a_restarted_server_still_has_them(self):
        a, b = self.both()
        a.call(lock, a.descriptor, fcntl.LOCK_EX, 10, 0)
        self.cluster.kill("mds")
        self.cluster.start_mds()
        self.assertTrue(denied(b, fcntl.LOCK_EX, 1, 5))
        self.assertFalse(denied(b, fcntl.LOCK_EX, 1, 10))
        a.call(lock, a.descriptor, fcntl.LOCK_UN)
        self.assertFalse(denied(b))

    def test_after_a_reboot_of_the_servers_host_they_are_reclaimed(self):
        a, b = self.both()
        a.call(lock, a.descriptor, fcntl.LOCK_EX, 10, 0)
        a.call(lock, a.descriptor, fcntl.LOCK_SH, 10, 100)
        self.cluster.kill("mds")
        # What a failed sync leaves behind: the next start is one of another boot.
        (self.cluster.home / "mds" / "metadata" / "sync-failed").write_text("0123456789abcdef\n")
        self.cluster.start_mds()
        self.assertTrue(denied(b, fcntl.LOCK_SH, 1, 5))
        self.assertTrue(denied(b, fcntl.LOCK_EX, 1, 105))
        self.assertFalse(denied(b, fcntl.LOCK_SH, 1, 105))
        a.write(b"still mine")
        a.call(lock, a.descriptor, fcntl.LOCK_UN)
        self.assertFalse(denied(b))


class LostLocks(unittest.TestCase):
    def test_who_lost_a_lock_is_told_by_errors_until_he_closes(self):
        with Cluster(BIN, pool_size="256M", lease_seconds=LEASE) as cluster:
            cluster.start_all()
            a, b = cluster.mount(name="a"), cluster.mount(name="b")
            (a / "f").write_bytes(b"content")
            first, other, second = OpenFile(a / "f"), OpenFile(a / "other"), OpenFile(b / "f")
            first.call(lock, first.descriptor, fcntl.LOCK_EX)
            a.process.send_signal(signal.SIGSTOP)
            second.start(lock, second.descriptor, fcntl.LOCK_EX).result(SECONDS)  # when the lease has run out
            a.process.send_signal(signal.SIGCONT)
            wait_until(lambda: "locks-lost" in cluster.log("a"), SECONDS, "the mount says so")
            for use in (lambda: first.write(b"x"), lambda: first.call(lock, first.descriptor, fcntl.LOCK_EX)):
                with self.assertRaises(OSError) as raised:
                    use()
                self.assertEqual(raised.exception.errno, errno.EIO)
            other.write(b"another file is another matter")
            second.write(b"CONTENT")
            second.close()
            first.call(lock, first.descriptor, fcntl.LOCK_UN)
            first.call(lock, first.descriptor, fcntl.LOCK_EX)
            self.assertEqual(first.read(7), b"CONTENT")
            first.write(b"x")
            self.assertEqual(cluster.log("a").count("locks-lost"), 1)
            first.close()
            other.close()
            a.unmount()
            b.unmount()


if __name__ == "__main__":
    unittest.main(verbosity=2)
