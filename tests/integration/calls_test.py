#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What common operations cost in calls to the MDS: COMPOUNDs, as the client counts them (shared/initiator/README.md has
the table). A change that makes one dearer has to say so here.

usage: calls_test.py BIN_DIRECTORY
"""
import errno
import fcntl
import json
import mmap
import os
import pathlib
import sqlite3
import subprocess
import sys
import time
import traceback
import unittest

from cluster import Cluster
from renameat2 import EXCHANGE, NOREPLACE, renameat2

BIN = sys.argv.pop(1)
MIB = 1 << 20


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="2G").start_all()
        cls.mount = cls.cluster.mount("actimeo=3600,flush_after=0,layoutstats_timer=0")  # no COMMITs beside what is counted
        (cls.mount / "directory").mkdir()
        (cls.mount / "directory" / "first").write_bytes(bytes(MIB))  # the brick is connected from here on
        cls.path = cls.mount / "directory" / "file"

    @classmethod
    def tearDownClass(cls):
        cls.mount.unmount()
        cls.cluster.close()

    def tearDown(self):
        if self.path.exists():
            self.path.unlink()

    def calls(self, work, mount=None):
        """By operation, PUTFH and the like left out; and all COMPOUNDs."""
        mount = mount or self.mount
        before = mount.wait_until_quiet()
        work()
        after = mount.wait_until_quiet()
        counts = {name: count - before["mds_operations"].get(name, 0)
                  for name, count in after["mds_operations"].items()
                  if count != before["mds_operations"].get(name, 0)
                  and name not in ("PUTFH", "SAVEFH", "RESTOREFH", "GETFH")}
        all_calls = after["mds_calls"] - before["mds_calls"]
        print(f"{self.id().rsplit('.', 1)[-1]}: {all_calls} calls {counts}")
        return all_calls, counts

    def create(self, size):
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        self.assertEqual(os.write(descriptor, bytes(size)), size)
        os.close(descriptor)

    def test_create_write_4_kib_close(self):
        calls, counts = self.calls(lambda: self.create(4096))
        self.assertEqual({k: counts.get(k) for k in ("LOOKUP", "OPEN", "WRITE", "CLOSE")},
                         {"LOOKUP": None, "OPEN": 1, "WRITE": 1, "CLOSE": 1})
        self.assertLessEqual(calls, 3)

    def test_create_write_64_kib_close(self):
        calls, counts = self.calls(lambda: self.create(65536))
        self.assertEqual({k: counts.get(k) for k in ("LOOKUP", "OPEN", "LAYOUTGET", "LAYOUTCOMMIT", "CLOSE")},
                         {"LOOKUP": None, "OPEN": 1, "LAYOUTGET": 1, "LAYOUTCOMMIT": 1, "CLOSE": 1})
        self.assertLessEqual(calls, 4)

    def test_many_new_files(self):
        """In a new directory, of which this mount knows that nothing is in it: an OPEN each. CLOSEs go sixteen to a
        call."""
        directory = self.mount / "new"
        directory.mkdir()
        calls, counts = self.calls(lambda: self.create_in(directory, 320))
        self.assertEqual({k: counts.get(k) for k in ("LOOKUP", "OPEN", "CLOSE")},
                         {"LOOKUP": None, "OPEN": 320, "CLOSE": 320})
        self.assertLessEqual(calls, 320 + 240)

    def test_many_new_files_in_a_directory_of_which_little_is_known(self):
        """LOOKUP and OPEN each. Once the directory has been listed, no LOOKUP."""
        (self.mount / "strange").mkdir()
        other = self.cluster.mount("actimeo=3600,flush_after=0,layoutstats_timer=0", name="stranger")
        directory = other / "strange"
        directory.stat()
        calls, counts = self.calls(lambda: self.create_in(directory, 32), other)
        self.assertEqual({k: counts.get(k) for k in ("LOOKUP", "OPEN")}, {"LOOKUP": 32, "OPEN": 32})
        self.assertEqual(len(os.listdir(directory)), 32)
        calls, counts = self.calls(lambda: self.create_in(directory, 32, "again"), other)
        self.assertEqual({k: counts.get(k) for k in ("LOOKUP", "OPEN")}, {"LOOKUP": None, "OPEN": 32})
        other.unmount()

    @staticmethod
    def create_in(directory, count, name=""):
        for number in range(count):
            os.close(os.open(directory / f"{name}{number}", os.O_WRONLY | os.O_CREAT, 0o644))

    def known_directory(self, name):
        """One that this mount knows completely: its own."""
        directory = self.mount / name
        directory.mkdir()
        (directory / "file").touch()
        return directory

    def test_mkdir_symlink_link_rename_unlink_in_a_known_directory(self):
        """One call each, with which comes all that the kernel asks for next."""
        directory = self.known_directory("names")
        self.mount.wait_until_quiet()
        for work, operation in ((lambda: (directory / "below").mkdir(), "CREATE"),
                                (lambda: (directory / "symlink").symlink_to("file"), "CREATE"),
                                (lambda: os.link(directory / "file", directory / "link"), "LINK"),
                                (lambda: os.rename(directory / "file", directory / "renamed"), "RENAME"),
                                (lambda: renameat2(directory / "renamed", directory / "new", NOREPLACE), "RENAME"),
                                (lambda: os.rename(directory / "new", directory / "below" / "moved"), "RENAME"),
                                (lambda: os.unlink(directory / "below" / "moved"), "REMOVE"),
                                (lambda: renameat2(directory / "symlink", directory / "below", EXCHANGE), "RENAME"),
                                (lambda: renameat2(directory / "symlink", directory / "below", EXCHANGE), "RENAME"),
                                (lambda: os.rmdir(directory / "below"), "REMOVE")):
            calls, counts = self.calls(work)
            self.assertEqual(counts.get(operation), 1)
            self.assertEqual(calls, 1, counts)

    def test_names_taken_away_elsewhere(self):
        """They end no belief in what they have not changed: one call each, also when the kernel asks for the attributes
        of a file and a directory meanwhile."""
        here, elsewhere = self.known_directory("here"), self.known_directory("elsewhere")
        (here / "data").write_bytes(bytes(MIB))
        for name in ("a", "b", "c", "d"):
            (elsewhere / name).touch()
        os.stat(elsewhere / "d")
        (elsewhere / "below").mkdir()
        data = os.open(here / "data", os.O_RDONLY | os.O_DIRECT)
        self.addCleanup(os.close, data)
        with mmap.mmap(-1, 4096) as page:
            for work, calls in ((lambda: os.unlink(elsewhere / "a"), 1),
                                (lambda: os.rename(elsewhere / "b", elsewhere / "new"), 1),
                                (lambda: os.rename(elsewhere / "c", elsewhere / "d"), 1),
                                (lambda: os.link(elsewhere / "d", elsewhere / "link"), 1),
                                (lambda: os.unlink(elsewhere / "link"), 1),
                                (lambda: os.rmdir(elsewhere / "below"), 1)):
                (here / "beside").mkdir()  # the kernel drops what it believes of the directory
                os.rmdir(here / "beside")
                os.preadv(data, [page], 0)  # and the time of access
                os.fstat(data)

                def work_and_look():
                    os.preadv(data, [page], 0)
                    work()
                    os.fstat(data)
                    os.stat(here)
                self.assertEqual(self.calls(work_and_look)[0], calls)

    def test_what_a_name_taken_away_has_changed_is_asked_for(self):
        """However long attributes are believed."""
        directory = self.known_directory("links")
        for name in ("a", "b"):
            (directory / name).touch()
        os.link(directory / "a", directory / "first")
        os.link(directory / "a", directory / "second")
        descriptor, replaced = (os.open(directory / name, os.O_RDONLY) for name in ("a", "b"))
        for one in (descriptor, replaced):
            self.addCleanup(os.close, one)
        before = os.fstat(descriptor)
        self.assertEqual(before.st_nlink, 3)
        os.unlink(directory / "first")  # not the newest name of the file
        self.assertEqual(os.fstat(descriptor).st_nlink, 2)
        (directory / "other").touch()
        os.rename(directory / "other", directory / "second")
        after = os.fstat(descriptor)
        self.assertEqual(after.st_nlink, 1)
        self.assertGreater(after.st_ctime_ns, before.st_ctime_ns)
        os.rename(directory / "a", directory / "b")
        self.assertEqual(os.fstat(replaced).st_nlink, 0)
        self.assertGreater(os.fstat(descriptor).st_ctime_ns, after.st_ctime_ns)
        os.unlink(directory / "b")
        self.assertEqual(os.fstat(descriptor).st_nlink, 0)
        links = directory.stat().st_nlink
        (directory / "below").mkdir()
        self.assertEqual(directory.stat().st_nlink, links + 1)
        os.rename(directory / "below", self.mount / "directory" / "below")
        self.assertEqual(directory.stat().st_nlink, links)
        os.rmdir(self.mount / "directory" / "below")

    def test_looking_again_for_what_is_not_there(self):
        """Each name once while the directory is as it was; own changes of it end nothing."""
        directory = self.mount / "directory"
        paths = [directory / f"absent-{number}" for number in range(20)]

        def look():
            for path in paths:
                self.assertFalse(path.exists())
        look()
        self.assertEqual(self.calls(look)[0], 0)
        self.create(0)
        self.assertEqual(self.calls(look)[0], 0)
        self.path.unlink()
        self.assertEqual(self.calls(look)[0], 0)

    def test_replacing_a_file_costs_no_lookup(self):
        """The kernel asks for the name of what a rename replaces, however well it knows it."""
        directory = self.known_directory("replaced")
        for _ in range(2):
            (directory / "new").write_bytes(b"x")
            self.mount.wait_until_quiet()
            calls, counts = self.calls(lambda: os.rename(directory / "new", directory / "file"))
            self.assertEqual((calls, counts["RENAME"]), (1, 1))
            self.assertEqual((directory / "file").read_bytes(), b"x")

    def test_exclusive_creation_asks_the_server(self):
        """Also in a directory that is known completely: another host may have been there."""
        directory = self.known_directory("exclusive")
        other = self.cluster.mount("flush_after=0,layoutstats_timer=0", name="exclusive-other")
        (other / "exclusive" / "taken").touch()
        with self.assertRaises(FileExistsError):
            os.open(directory / "taken", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        self.assertTrue((directory / "taken").exists())  # and what was wrong is not believed any more
        other.unmount()

    def test_ls_l_asks_for_nothing_but_the_listing(self):
        """Nor for extended attributes and ACLs: there are none, which the server need not be asked."""
        directory = self.mount / "listed"
        directory.mkdir()
        self.create_in(directory, 200)
        other = self.cluster.mount("actimeo=3600,flush_after=0,layoutstats_timer=0", name="lister")
        other_directory = other / "listed"
        other_directory.stat()
        calls, counts = self.calls(
            lambda: subprocess.run(["ls", "-l", str(other_directory)], check=True, capture_output=True), other)
        self.assertLessEqual(calls, 2, counts)
        self.assertNotIn("LOOKUP", counts)
        other.unmount()

    def test_a_listing_is_kept_until_the_directory_changes(self):
        """As long as the attributes that came with it are believed."""
        directory = self.mount / "kept"
        directory.mkdir()
        self.create_in(directory, 2000)
        self.assertEqual(len(os.listdir(directory)), 2000)
        kept = []
        self.assertEqual(self.calls(lambda: kept.extend(os.listdir(directory)))[0], 0)
        self.assertEqual(len(set(kept)), 2000)
        (directory / "own").touch()
        self.assertIn("own", os.listdir(directory))
        os.unlink(directory / "own")
        self.assertNotIn("own", os.listdir(directory))
        # What another host has made is listed as soon as an answer of the server shows that there was a change.
        other = self.cluster.mount("flush_after=0,layoutstats_timer=0", name="keeper")
        (other / "kept" / "foreign").touch()
        os.chmod(directory, 0o700)
        self.assertIn("foreign", os.listdir(directory))
        other.unmount()

    @staticmethod
    def make_the_kernel_forget(mount):
        """All but what is open, or where somebody is."""
        def known():
            return json.loads(os.getxattr(mount.path, "system.pnfsrdma.status"))["files"]["known_to_kernel"]
        for _ in range(100):
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
            if known() <= 3:
                return
            time.sleep(0.1)
        raise AssertionError(f"the kernel forgets nothing: {known()}")

    def test_what_the_kernel_has_forgotten_is_asked_for_no_more_than_before(self):
        """The mount keeps names, attributes and listings as long as it believes them; own changes go on as they do."""
        directory = self.known_directory("forgotten")
        self.create_in(directory, 1200)
        (directory / "below").mkdir()

        def stat_each():
            for number in range(1200):
                self.assertEqual((directory / str(number)).stat().st_size, 0)
        self.make_the_kernel_forget(self.mount)
        self.assertEqual(self.calls(stat_each)[0], 0, "names of its own, never listed")
        self.assertIn("READDIR", self.calls(lambda: self.assertEqual(len(os.listdir(directory)), 1202))[1])
        for what in ("once", "again"):
            self.make_the_kernel_forget(self.mount)
            listed = []
            self.assertEqual(self.calls(lambda listed=listed: listed.extend(self.ls_l(directory)))[0], 0, what)
            self.assertEqual(len(listed), 1202)
        os.unlink(directory / "7")
        os.rename(directory / "8", directory / "renamed")
        (directory / "9").write_bytes(b"content")
        self.make_the_kernel_forget(self.mount)

        def look():
            self.assertFalse((directory / "7").exists())
            self.assertFalse((directory / "8").exists())
            self.assertEqual((directory / "renamed").stat().st_size, 0)
            self.assertEqual((directory / "9").stat().st_size, 7)
        self.assertEqual(self.calls(look)[0], 0)
        self.make_the_kernel_forget(self.mount)
        names = os.listdir(directory)
        self.assertEqual(len(names), 1201)
        self.assertNotIn("7", names)

    @staticmethod
    def ls_l(directory):
        output = subprocess.run(["ls", "-l", str(directory)], check=True, capture_output=True, text=True)
        return output.stdout.splitlines()[1:]

    def test_what_the_kernel_has_forgotten_and_another_host_has_changed(self):
        """Is seen when an answer of the server shows that there was a change; a file's own attributes behind actimeo."""
        directory = self.known_directory("forgotten-and-changed")
        self.create_in(directory, 20)
        os.link(directory / "0", directory / "link")
        other = self.cluster.mount("flush_after=0,layoutstats_timer=0", name="changer")
        there = other / "forgotten-and-changed"
        self.assertEqual(len(self.ls_l(directory)), 22)
        os.unlink(there / "1")
        os.rename(there / "2", there / "3")
        os.unlink(there / "0")
        self.make_the_kernel_forget(self.mount)
        (directory / "own").touch()
        self.assertFalse((directory / "1").exists())
        self.assertFalse((directory / "2").exists())
        self.assertEqual((directory / "3").stat().st_ino, (there / "3").stat().st_ino)
        self.assertFalse((directory / "0").exists())
        self.assertEqual((directory / "link").stat().st_nlink, 1)
        self.assertEqual(sorted(os.listdir(directory)), sorted(os.listdir(there)))
        other.unmount()

    def test_nothing_is_kept_with_noac_or_without_memory_for_it(self):
        (self.mount / "unkept").mkdir()
        self.create_in(self.mount / "unkept", 20)
        for options in ("noac", "lookupcache=none", "actimeo=3600,name_memory=0", "nodefault_permissions"):
            other = self.cluster.mount(f"{options},flush_after=0,layoutstats_timer=0", name="unkept-" + options[:4])
            for _ in range(2):
                self.make_the_kernel_forget(other)
                counts = self.calls(lambda other=other: self.ls_l(other / "unkept"), other)[1]
                self.assertGreaterEqual(counts.get("READDIR", 0), 1, options)
                status = json.loads(os.getxattr(other.path, "system.pnfsrdma.status"))["files"]
                self.assertEqual((status["kept"], status["kept_bytes"]), (0, 0))
            other.unmount()

    def test_a_listing_is_not_kept_longer_than_its_attributes(self):
        """`ls -l` of a kept one would ask for each file."""
        directory = self.mount / "old"
        directory.mkdir()
        self.create_in(directory, 200)
        other = self.cluster.mount("acregmin=1,acdirmin=30,flush_after=0,layoutstats_timer=0", name="old-lister")
        for _ in range(3):
            counts = self.calls(lambda: subprocess.run(["ls", "-l", str(other / "old")], check=True, capture_output=True),
                                other)[1]
            # None where the directory is delegated and the files' attributes are believed for longer by then.
            self.assertLessEqual(counts.get("READDIR", 0), 1)
            self.assertLessEqual(counts.get("GETATTR", 0), 3)
            self.assertLessEqual(counts.get("LOOKUP", 0), 3)
            time.sleep(1.1)
        other.unmount()

    def test_opened_again_and_again(self):
        """A file that is opened again before its CLOSE was sent stays open at the server. (To read, or to read and write,
        the second OPEN brings a delegation.)"""
        self.create(4096)

        def work():
            for _ in range(100):
                os.close(os.open(self.path, os.O_WRONLY))
        calls, counts = self.calls(work)
        self.assertEqual(counts["OPEN"], 100)
        self.assertLessEqual(counts["CLOSE"], 50)
        self.assertLessEqual(calls, 150)

    def test_growing_by_a_gibibyte(self):
        block = os.urandom(MIB)

        def grow():
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
            for _ in range(1024):
                os.write(descriptor, block)
            os.close(descriptor)
        calls, counts = self.calls(grow)
        # Doubled up to 64 MiB at a time, then 16 for the rest; a commit for every 32 MiB that are kept.
        self.assertLessEqual(counts["LAYOUTGET"], 26)
        self.assertLessEqual(counts["LAYOUTCOMMIT"], 36)
        self.assertNotIn("WRITE", counts)
        self.assertLessEqual(calls, 68)

    def test_open_and_close(self):
        """An open by name asks whether the name still leads there, in the same call; the second one to read, or to read
        and write, brings a delegation, and is kept. Behind that nobody is asked."""
        for flags in (os.O_RDONLY, os.O_RDWR):
            with self.subTest(flags=flags):
                self.open_and_close(flags)
                self.path.unlink()

    def open_and_close(self, flags):
        self.create(4096)

        def work():
            os.close(os.open(self.path, flags))
        by_name = {"LOOKUP": 1, "VERIFY": 1, "OPEN": 1, "GETATTR": 1}
        for expected in ((2, {**by_name, "CLOSE": 1}), (1, by_name), (0, {}), (0, {})):
            calls, counts = self.calls(work)
            counts.pop("READ", None)  # what it brings is not what is counted here
            self.assertEqual((calls, counts), expected)
            # A rename tells the new name: no second try.
            os.rename(self.path, self.mount / "directory" / "other")
            os.rename(self.mount / "directory" / "other", self.path)
            os.stat(self.path)

    def test_open_and_read_beside_new_files(self):
        """The layout comes with the OPEN, whatever else has happened in the file system."""
        self.create(MIB)
        for number in range(2):
            (self.mount / "directory" / f"beside-{number}").touch()

            def work():
                descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
                with mmap.mmap(-1, 4096) as page:
                    self.assertEqual(os.preadv(descriptor, [page], 0), 4096)
                os.close(descriptor)
            calls, counts = self.calls(work)
            self.assertEqual(calls, 2 - number, counts)  # the second one is not closed: a delegation came with it

    def test_a_small_file(self):
        """What each costs today, in all: a change that makes one of them cheaper says so here, too."""
        directory = self.known_directory("small")
        path = directory / "data"

        def create_and_sync():
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(descriptor, bytes(3072))
            os.fsync(descriptor)
            os.close(descriptor)

        def read():
            self.assertEqual(len(path.read_bytes()), 3072)

        def lock_and_unlock():
            fcntl.lockf(self.locked, fcntl.LOCK_EX)
            fcntl.lockf(self.locked, fcntl.LOCK_UN)
        for what, work, most in (("create, write 3 KiB, fsync, close", create_and_sync, 4),
                                 ("open, read 3 KiB, close: just written", read, 2),
                                 ("the same again", read, 1),
                                 ("and again", read, 0)):
            self.assertLessEqual(self.calls(work)[0], most, what)
        other = self.cluster.mount("actimeo=3600,flush_after=0,layoutstats_timer=0", name="small-reader")
        path = other / "small" / "data"
        path.stat()
        self.assertLessEqual(self.calls(read, other)[0], 3, "open, read 3 KiB, close: the first time")
        other.unmount()
        with open(directory / "file", "r+b", buffering=0) as self.locked:
            self.assertLessEqual(self.calls(lock_and_unlock)[0], 2, "lock and unlock")

    def delegated(self, path):
        """From here on the mount decides about it."""
        for _ in range(2):
            self.mount.wait_until_quiet()
            os.close(os.open(path, os.O_RDWR))
        self.assertEqual(self.calls(lambda: os.close(os.open(path, os.O_RDWR))), (0, {}))

    def test_locks_under_a_write_delegation(self):
        """Nobody else can have any."""
        self.create(4096)
        self.delegated(self.path)

        def work():
            with open(self.path, "r+b", buffering=0) as file:
                for _ in range(10):
                    fcntl.lockf(file, fcntl.LOCK_EX)
                    fcntl.lockf(file, fcntl.LOCK_UN)
                    fcntl.flock(file, fcntl.LOCK_SH)
                    fcntl.flock(file, fcntl.LOCK_UN)
        self.assertEqual(self.calls(work), (0, {}))

    def test_a_transaction_of_a_database(self):
        """What it costs today, by how SQLite keeps its journal: a change that makes it cheaper says so here, too. No lock is
        among these calls, and the pieces of a small journal are one WRITE for each sync."""
        for mode, most in (("delete", 17), ("truncate", 16), ("persist", 21), ("memory", 1)):
            path = self.known_directory(f"database-{mode}") / "data"
            for _ in range(3):
                database = sqlite3.connect(path)
                database.execute(f"pragma journal_mode={mode}")
                database.execute("create table if not exists numbers (number integer)")
                database.close()
                self.mount.wait_until_quiet()

            def work(path=path, mode=mode):
                database = sqlite3.connect(path)
                database.execute(f"pragma journal_mode={mode}")
                with database:
                    database.execute("insert into numbers values (1)")
                database.close()
            work()
            self.assertLessEqual(self.calls(work)[0], most, f"open, insert, close: {mode}")
            database = sqlite3.connect(path)
            database.execute(f"pragma journal_mode={mode}")

            def insert(database=database):
                with database:
                    database.execute("insert into numbers values (1)")
            insert()
            self.assertLessEqual(self.calls(insert)[0], most, f"insert: {mode}")
            database.close()

    def test_pages_survive_an_own_rename(self):
        """As they survive an own write: no one else has changed the file."""
        self.create(4096)
        self.path.read_bytes()
        renamed = self.mount / "directory" / "renamed"
        os.rename(self.path, renamed)
        self.assertNotIn("READ", self.calls(renamed.read_bytes)[1])
        os.rename(renamed, self.path)

    def small_files(self, name, count):
        """Of 3 KiB each, and a mount that knows nothing of them but names and attributes, and that they are small."""
        directory = self.known_directory(name)
        for number in range(count + 1):
            (directory / str(number)).write_bytes(bytes([number + 1]) * 3072)
        other = self.cluster.mount("actimeo=3600,flush_after=0,layoutstats_timer=0", name=f"{name}-reader")
        self.addCleanup(other.unmount)
        (other / name / str(count)).read_bytes()
        return other, [other / name / str(number) for number in range(count)]

    def test_a_small_file_is_read_with_its_open(self):
        """One call to wait for; the CLOSE is sent later. And once the kernel has the bytes no READ."""
        other, (path,) = self.small_files("read-with-open", 1)
        path.stat()

        def read():
            self.assertEqual(path.read_bytes(), bytes([1]) * 3072)
        by_name = {"LOOKUP": 1, "VERIFY": 1, "OPEN": 1, "GETATTR": 1, "CLOSE": 1}
        self.assertEqual(self.calls(read, other), (2, {**by_name, "READ": 1}))
        del by_name["CLOSE"]
        self.assertEqual(self.calls(read, other), (1, by_name))
        self.assertEqual(self.calls(read, other), (0, {}))

    def test_what_was_read_with_the_open_is_not_shown_after_a_change(self):
        """Also when nobody has read yet."""
        other, paths = self.small_files("read-and-change", 3)
        with mmap.mmap(-1, 4096) as page:
            page[:] = b"x" * 4096
            descriptors = [os.open(path, os.O_RDONLY) for path in paths]
            for descriptor in descriptors:
                self.addCleanup(os.close, descriptor)
            writer = os.open(paths[0], os.O_WRONLY | os.O_DIRECT)
            self.assertEqual(os.pwritev(writer, [page], 0), 4096)
            self.assertEqual(os.pread(descriptors[0], 4096, 0), b"x" * 4096)
            os.close(writer)
        os.truncate(paths[1], 10)
        self.assertEqual(os.pread(descriptors[1], 4096, 0), bytes([2]) * 10)
        # Another host: seen by who opens afterwards.
        (self.mount / "read-and-change" / "2").write_bytes(b"y" * 3072)
        self.assertEqual(paths[2].read_bytes(), b"y" * 3072)

    def test_utimes(self):
        self.create(4096)
        os.stat(self.path)
        calls, counts = self.calls(lambda: os.utime(self.path, (1, 2)))
        self.assertEqual(counts, {"SETATTR": 1, "GETATTR": 1})
        self.assertEqual(calls, 1)

    def test_extended_attributes_of_a_file_without_any(self):
        self.create(4096)

        def look():
            self.assertEqual(os.listxattr(self.path), [])
            with self.assertRaises(OSError) as none:
                os.getxattr(self.path, "user.none")
            self.assertEqual(none.exception.errno, errno.ENODATA)
        self.assertEqual(self.calls(look), (0, {}))
        os.setxattr(self.path, "user.one", b"1")
        self.assertEqual(self.calls(lambda: self.assertEqual(os.listxattr(self.path), ["user.one"])),
                         (1, {"LISTXATTRS": 1}))
        self.assertEqual(self.calls(lambda: self.assertEqual(os.getxattr(self.path, "user.one"), b"1")),
                         (1, {"GETXATTR": 1}))
        os.removexattr(self.path, "user.one")
        self.assertEqual(self.calls(look), (0, {}))

    def test_who_may_not_read_a_file_without_extended_attributes(self):
        self.create(4096)
        os.chmod(self.path, 0o600)

        def as_user():
            os.setuid(12345)
            assert os.listxattr(self.path) == []
            try:
                os.getxattr(self.path, "user.none")
            except PermissionError:
                return
            raise AssertionError("it was read")
        child = os.fork()
        if child == 0:
            try:
                as_user()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_stat_after_utimes_is_answered_from_what_came_with_it(self):
        self.create(4096)

        def work():
            os.utime(self.path, (1, 2))
            self.assertEqual(os.stat(self.path).st_mtime, 2)
        self.assertEqual(self.calls(work)[0], 1)

    def test_find_by_size_asks_for_no_file_by_itself(self):
        """READDIR brings what stat asks, in a directory of which this mount knows nothing as in one it has just seen."""
        files = 2000
        (self.mount / "many").mkdir()
        for number in range(files):
            (self.mount / "many" / f"file-{number:05}").touch()
        other = self.cluster.mount("flush_after=0,layoutstats_timer=0", name="other")
        for what in ("unknown", "old"):
            found = []
            calls, counts = self.calls(lambda: found.extend(self.find_empty(other / "many")), other)
            self.assertEqual(len(found), files, what)
            self.assertLessEqual(counts.get("LOOKUP", 0), 2, what)
            # Ahead of each READDIR and LOOKUP is one of the directory.
            self.assertLessEqual(counts.get("GETATTR", 0) - counts["READDIR"], 4, what)
            self.assertLessEqual(calls, 30, what)
            time.sleep(3.2)  # longer than acregmin
        other.unmount()

    @staticmethod
    def find_empty(directory):
        return subprocess.run(["find", str(directory), "-type", "f", "-size", "0"], check=True, capture_output=True,
                              text=True).stdout.split()

    def test_reading_the_statistics(self):
        """Costs nothing, however old the attributes of the root are."""
        mount = self.cluster.mount("acdirmin=1,acdirmax=1,flush_after=0,layoutstats_timer=0", name="impatient")
        before = mount.statistics()
        for _ in range(3):
            time.sleep(1.2)
            after = mount.statistics()
        self.assertEqual(after["mds_calls"] - before["mds_calls"], 0, after["mds_operations"])
        mount.unmount()


if __name__ == "__main__":
    unittest.main()
