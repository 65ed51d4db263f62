#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""renameat2(2) with RENAME_NOREPLACE and RENAME_EXCHANGE: atomic, also between two mounts.

usage: rename_flags_test.py BIN_DIRECTORY
"""
import errno
import json
import os
import sys
import threading
import unittest

from cluster import Cluster
from renameat2 import EXCHANGE, NOREPLACE, WHITEOUT, renameat2
from two_mounts import TwoMounts

TwoMounts.bin = sys.argv.pop(1)
NOBODY = 65534
ROUNDS = 200


class RenameFlags(TwoMounts):
    daemons = {"pool_size": "512M"}
    options = ""  # the usual caches

    def setUp(self):
        name = self.id().rsplit(".", 1)[-1]
        self.directory, self.elsewhere = self.mount / name, self.other / name
        self.directory.mkdir()

    def refused(self, number, *arguments):
        with self.assertRaises(OSError) as caught:
            renameat2(*arguments)
        self.assertEqual(errno.errorcode[caught.exception.errno], errno.errorcode[number])

    def files(self, *names):
        paths = [self.directory / name for name in names]
        for path in paths:
            path.write_text(path.name)
        return paths

    def as_user(self, work):
        """0, or the errno with which it fails as nobody."""
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                work()
                os._exit(0)
            except OSError as e:
                os._exit(e.errno)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def test_noreplace(self):
        a, b = self.files("a", "b")
        self.refused(errno.EEXIST, a, b, NOREPLACE)
        self.refused(errno.ENOENT, self.directory / "none", self.directory / "c", NOREPLACE)
        self.assertEqual((a.read_text(), b.read_text()), ("a", "b"))
        inode = a.stat().st_ino
        renameat2(a, self.directory / "c", NOREPLACE)
        self.assertEqual((self.directory / "c").stat().st_ino, inode)
        self.assertEqual(sorted(os.listdir(self.elsewhere)), ["b", "c"])
        (self.directory / "d").mkdir()
        renameat2(self.directory / "d", self.directory / "e", NOREPLACE)
        self.refused(errno.EEXIST, self.directory / "e", b, NOREPLACE)
        self.assertTrue((self.elsewhere / "e").is_dir())

    def test_noreplace_replaces_nothing_that_the_kernel_here_does_not_know(self):
        a, = self.files("a")
        for number in range(20):
            target = f"new{number}"
            self.assertFalse((self.directory / target).exists())
            (self.elsewhere / target).write_text("theirs")
            self.refused(errno.EEXIST, a, self.directory / target, NOREPLACE)
            self.assertEqual((self.elsewhere / target).read_text(), "theirs")
        self.assertEqual((self.elsewhere / "a").read_text(), "a")

    def test_exchange_of_files(self):
        a, b = self.files("a", "b")
        inodes, before = (a.stat().st_ino, b.stat().st_ino), a.stat()
        directory_before = self.directory.stat()
        with open(a) as opened:
            renameat2(a, b, EXCHANGE)
            self.assertEqual((b.stat().st_ino, a.stat().st_ino), inodes)
            self.assertEqual((a.read_text(), b.read_text()), ("b", "a"))
            self.assertEqual(opened.read(), "a")
            self.assertEqual(os.fstat(opened.fileno()).st_nlink, 1)
        self.assertGreater(b.stat().st_ctime_ns, before.st_ctime_ns)
        self.assertEqual(b.stat().st_mtime_ns, before.st_mtime_ns)
        self.assertGreater(self.directory.stat().st_mtime_ns, directory_before.st_mtime_ns)
        a.write_text("written behind it")
        self.assertEqual((self.elsewhere / "a").read_text(), "written behind it")
        self.assertEqual((self.elsewhere / "b").read_text(), "a")
        for _ in range(3):  # back and forth
            renameat2(a, b, EXCHANGE)
        self.assertEqual((a.stat().st_ino, b.stat().st_ino), inodes)

    def test_exchange_of_directories_files_and_links_across_directories(self):
        here, there = self.directory / "here", self.directory / "there"
        (here / "d").mkdir(parents=True)
        (here / "d" / "inside").write_text("inside")
        there.mkdir()
        (there / "f").write_text("f")
        (there / "l").symlink_to("f")
        renameat2(here / "d", there / "f", EXCHANGE)
        self.assertEqual((there / "f" / "inside").read_text(), "inside")
        self.assertEqual((here / "d").read_text(), "f")
        self.assertEqual((here.stat().st_nlink, there.stat().st_nlink), (2, 3))
        self.assertEqual(os.path.realpath(there / "f" / ".."), os.path.realpath(there))
        renameat2(there / "l", here / "d", EXCHANGE)
        self.assertEqual(os.readlink(self.elsewhere / "here" / "d"), "f")
        self.assertEqual((self.elsewhere / "there" / "l").read_text(), "f")
        self.assertEqual(sorted(os.listdir(self.elsewhere / "there")), ["f", "l"])

    def test_what_cannot_be_exchanged(self):
        a, b = self.files("a", "b")
        (self.directory / "d" / "e").mkdir(parents=True)
        os.link(a, self.directory / "a2")
        self.refused(errno.ENOENT, a, self.directory / "none", EXCHANGE)
        self.refused(errno.ENOENT, self.directory / "none", a, EXCHANGE)
        self.refused(errno.EINVAL, self.directory / "d", self.directory / "d" / "e", EXCHANGE)
        self.refused(errno.EINVAL, self.directory / "d" / "e", self.directory / "d", EXCHANGE)
        self.refused(errno.EINVAL, a, b, WHITEOUT)
        self.refused(errno.EINVAL, a, b, EXCHANGE | NOREPLACE)
        self.refused(errno.EXDEV, a, "/tmp", EXCHANGE)
        renameat2(a, self.directory / "a2", EXCHANGE)  # one file: nothing happens
        renameat2(self.directory / "a2", b, EXCHANGE)
        self.assertEqual([(self.directory / name).read_text() for name in ("a", "a2", "b")], ["a", "b", "a"])

    def test_rights(self):
        for name, mode in (("open", 0o777), ("closed", 0o755), ("sticky", 0o1777)):
            (self.directory / name).mkdir()
            os.chmod(self.directory / name, mode)
            (self.directory / name / "f").write_text(name)
        paths = {name: self.directory / name / "f" for name in ("open", "closed", "sticky")}
        for one, other, number in (("open", "closed", errno.EACCES), ("closed", "open", errno.EACCES),
                                   ("open", "sticky", errno.EPERM), ("sticky", "open", errno.EPERM)):
            self.assertEqual(self.as_user(lambda: renameat2(paths[one], paths[other], EXCHANGE)), number)
        self.assertEqual(self.as_user(lambda: renameat2(paths["closed"], self.directory / "open" / "g", NOREPLACE)),
                         errno.EACCES)
        for name, path in paths.items():
            self.assertEqual(path.read_text(), name)

    def test_another_mount_opens_what_has_the_name_now(self):
        a, b = self.files("a", "b")
        usual = self.cluster.mount(name="usual")  # believes names for a while
        name = self.directory.name
        for number in range(20):
            now = (a.read_text(), b.read_text())
            self.assertEqual(((usual / name / "a").read_text(), (usual / name / "b").read_text()), now)
            renameat2(a, b, EXCHANGE)
            self.assertEqual(((usual / name / "a").read_text(), (usual / name / "b").read_text()), now[::-1])
        usual.unmount()

    def test_what_another_mount_has_exchanged_is_exchanged_again(self):
        """Its kernel and ours believe different things of the names."""
        a, b = self.files("a", "b")
        usual = self.cluster.mount(name="second")
        theirs = [usual / self.directory.name / name for name in ("a", "b")]
        self.assertEqual([path.read_text() for path in theirs], ["a", "b"])
        for number in range(20):
            renameat2(a, b, EXCHANGE)
            renameat2(*theirs, EXCHANGE)
            self.assertEqual([path.read_text() for path in theirs], ["a", "b"])
            self.assertEqual((a.read_text(), b.read_text()), ("a", "b"))
        usual.unmount()

    def race(self, *works):
        """All at once; what each returned, or its errno."""
        barrier, outcomes = threading.Barrier(len(works)), [None] * len(works)

        def run(index):
            barrier.wait()
            try:
                outcomes[index] = works[index]()
            except OSError as e:
                outcomes[index] = errno.errorcode[e.errno]
        threads = [threading.Thread(target=run, args=(index,)) for index in range(len(works))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return outcomes

    def test_one_of_many_wins_with_noreplace(self):
        places = [self.directory, self.elsewhere, self.directory, self.elsewhere]
        for number in range(ROUNDS):
            for index, place in enumerate(places):
                (place / f"{number}.{index}").write_text(str(index))
            outcomes = self.race(*[
                lambda index=index, place=place: renameat2(place / f"{number}.{index}", place / f"{number}", NOREPLACE)
                for index, place in enumerate(places)])
            self.assertEqual(sorted(map(str, outcomes)), ["EEXIST", "EEXIST", "EEXIST", "None"])
            winner = outcomes.index(None)
            self.assertEqual((self.elsewhere / f"{number}").read_text(), str(winner))
            left = {name for name in os.listdir(self.elsewhere) if name.startswith(f"{number}.")}
            self.assertEqual(left, {f"{number}.{index}" for index in range(4)} - {f"{number}.{winner}"})

    def test_noreplace_progresses_in_a_busy_directory(self):
        stop = threading.Event()

        def be_busy():
            while not stop.is_set():
                (self.elsewhere / "busy").write_text("x")
                os.unlink(self.elsewhere / "busy")
        busy = threading.Thread(target=be_busy)
        busy.start()
        a, = self.files("0")
        for number in range(ROUNDS):
            renameat2(self.directory / f"{number}", self.directory / f"{number + 1}", NOREPLACE)
        stop.set()
        busy.join()
        self.assertEqual(os.listdir(self.elsewhere), [str(ROUNDS)])

    def test_racing_exchanges_lose_nothing(self):
        self.files("a", "b", "c")
        done = [0, 0]

        def exchange(index, place, pairs):
            for number in range(ROUNDS):
                one, other = pairs[number % len(pairs)]
                renameat2(place / one, place / other, EXCHANGE)
                done[index] += 1
        outcomes = self.race(lambda: exchange(0, self.directory, [("a", "b"), ("b", "c")]),
                             lambda: exchange(1, self.elsewhere, [("b", "a"), ("c", "a")]))
        self.assertEqual((outcomes, done), ([None, None], [ROUNDS, ROUNDS]))
        self.assertEqual(sorted((self.elsewhere / name).read_text() for name in "abc"), ["a", "b", "c"])
        self.assertEqual(sorted(os.listdir(self.elsewhere)), ["a", "b", "c"])

    def exchanges(self):
        """Successful RENAMEs at the server."""
        counters = self.cluster.mds_counters()
        return counters["operations"].get("RENAME", 0) - counters["errors"].get("RENAME", 0)

    def test_each_racing_exchange_is_done_once(self):
        """An odd number of exchanges of one pair leaves it exchanged. Linux does not ask for one of two names that it
        takes for the same file, because it looked at them before and behind an exchange of the other mount."""
        self.files("a", "b")
        before = self.exchanges()

        def exchange(place):
            for _ in range(ROUNDS):
                renameat2(place / "a", place / "b", EXCHANGE)
        self.assertEqual(self.race(lambda: exchange(self.directory), lambda: exchange(self.elsewhere)), [None, None])
        done = self.exchanges() - before
        self.assertTrue(ROUNDS < done <= 2 * ROUNDS, done)
        now = [(self.elsewhere / name).read_text() for name in "ab"]
        self.assertEqual(now, ["a", "b"] if done % 2 == 0 else ["b", "a"])


class TwoExports(unittest.TestCase):
    def test_nothing_moves_between_them_and_their_directories_stay(self):
        cluster = Cluster(TwoMounts.bin, pool_size="256M")
        self.addCleanup(cluster.close)
        config = json.loads((cluster.home / "mds.json").read_text())
        config["exports"].append({**config["exports"][0], "path": "/below"})
        cluster.write_config("mds", config)
        mount = cluster.start_all().mount()
        (mount / "below").mkdir()
        (mount / "directory").mkdir()
        for name in ("a", "below/b"):
            (mount / name).write_text(name)
        for old, new, flags, number in (("a", "below/b", EXCHANGE, errno.EXDEV),
                                        ("below/b", "a", EXCHANGE, errno.EXDEV),
                                        ("a", "below/c", NOREPLACE, errno.EXDEV),
                                        ("below", "directory", EXCHANGE, errno.EBUSY),
                                        ("directory", "below", EXCHANGE, errno.EBUSY),
                                        ("below", "elsewhere", NOREPLACE, errno.EBUSY)):
            with self.assertRaises(OSError) as caught:
                renameat2(mount / old, mount / new, flags)
            self.assertEqual(errno.errorcode[caught.exception.errno], errno.errorcode[number], (old, new))
        self.assertEqual([(mount / name).read_text() for name in ("a", "below/b")], ["a", "below/b"])
        mount.unmount()


if __name__ == "__main__":
    unittest.main(verbosity=2)
