#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Delegations of the mount: what they spare, and that nobody sees what is old because of one.

usage: delegation_test.py BIN_DIRECTORY
"""
import errno
import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

import cluster
from two_mounts import TwoMounts

BIN = sys.argv.pop(1)
LEASE = 3
# Names and attributes are the kernel's for a minute here: what it asks for is counted, not when.
OPTIONS = "actimeo=60,flush_after=0,layoutstats_timer=0"


def read(path):
    return path.read_bytes()


class Delegations(TwoMounts):
    bin = BIN
    daemons = {"pool_size": "1G", "lease_seconds": LEASE}
    options = OPTIONS


class ToRead(Delegations):
    def held(self, name, content=b"old", size=None):
        """A file of which the mount has a delegation."""
        path = self.mount / name
        path.write_bytes(content if size is None else bytes(size))
        self.mount.wait_until_quiet()  # the open for writing is closed
        granted = self.count("delegations_granted")
        read(path)
        self.assertEqual(self.count("delegations_granted"), granted)
        read(path)
        self.assertEqual(self.count("delegations_granted"), granted + 1)
        return path

    def test_open_read_close_and_stat_ask_nobody(self):
        for size in (3000, 100_000):
            path = self.held(f"held.{size}", size=size)

            def work():
                for _ in range(20):
                    self.assertEqual(read(path), bytes(size))
                    path.stat()
            self.assertEqual(self.calls(work), (0, {}))

    def test_files_that_are_read_once_cost_no_delegation(self):
        granted = self.count("delegations_granted")
        for number in range(20):
            (self.other / f"scanned.{number}").write_bytes(b"x")
            (self.mount / f"own.{number}").write_bytes(b"x")
        for number in range(20):
            read(self.mount / f"scanned.{number}")
            read(self.mount / f"own.{number}")
        of_directory = min(self.count("GET_DIR_DELEGATION"), 1)  # in which 20 names were looked for in a row
        of_creation = 20  # for their writing, and returned with the CLOSE
        self.assertLessEqual(self.count("delegations_granted"), granted + of_directory + of_creation)

    def test_who_caches_no_attributes_wants_none(self):
        self.held("noac")
        for _ in range(3):
            read(self.other / "noac")
        self.assertEqual(self.other.statistics()["delegations_granted"], 0)

    def test_what_another_host_writes_is_read_at_the_next_open(self):
        path = self.held("written")
        for content in (b"new and longer", b"s", bytes(200_000)):
            (self.other / "written").write_bytes(content)
            self.assertEqual(read(path), content)
            self.assertEqual(path.stat().st_size, len(content))

    def test_a_file_that_stays_open_elsewhere_for_writing(self):
        path = self.held("shared")
        with open(self.other / "shared", "r+b", buffering=0) as writer:
            for number in range(5):
                writer.seek(0)
                writer.write(f"{number:03}".encode())
                os.fsync(writer.fileno())
                time.sleep(0.5)  # the time of an overwrite follows its fsync
                self.assertEqual(read(path), f"{number:03}".encode())

    def test_what_another_host_puts_in_its_place(self):
        path = self.held("replaced")
        (self.other / "new").write_bytes(b"new")
        os.rename(self.other / "new", self.other / "replaced")
        self.assertEqual(read(path), b"new")

    def test_what_another_host_removes(self):
        path = self.held("removed")
        with open(path, "rb") as reader:
            (self.other / "removed").unlink()
            self.assertEqual(reader.read(), b"old")
        with self.assertRaises(FileNotFoundError):
            read(path)

    def test_what_another_host_renames(self):
        path = self.held("before")
        os.rename(self.other / "before", self.other / "after")
        with self.assertRaises(FileNotFoundError):
            read(path)
        self.assertEqual(read(self.mount / "after"), b"old")

    def test_truncation_and_attributes_of_another_host(self):
        path = self.held("cut", content=b"long enough")
        os.truncate(self.other / "cut", 4)
        self.assertEqual(read(path), b"long")
        os.utime(self.other / "cut", (1, 1))
        read(path)
        self.assertEqual(path.stat().st_mtime, 1)

    def test_own_changes(self):
        path = self.held("own")
        with open(path, "ab") as writer:
            writer.write(b" and new")
        self.assertEqual(read(path), b"old and new")
        self.assertEqual(path.stat().st_size, 11)
        os.rename(path, self.mount / "own2")
        self.assertEqual(read(self.mount / "own2"), b"old and new")
        os.truncate(self.mount / "own2", 2)
        self.assertEqual(read(self.mount / "own2"), b"ol")
        (self.mount / "own2").unlink()
        self.assertEqual((self.mount / "own2").exists(), False)

    def test_who_may_not_read_may_not_read_a_held_file(self):
        path = self.held("private", content=b"secret")

        def reads(user):
            return subprocess.run(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "cat", path],
                                  capture_output=True, check=False).returncode == 0
        path.chmod(0o600)
        read(path)
        self.assertFalse(reads(12345))
        path.chmod(0o604)
        self.assertTrue(reads(12345))
        self.assertTrue(reads(12345))
        os.chmod(self.other / "private", 0o600)
        self.mount.wait_until_quiet()
        read(path)  # the kernel sees the new mode
        self.assertFalse(reads(12345))
        self.assertEqual(read(path), b"secret")

    def make_the_kernel_forget(self, known_at_most):
        def forgets():
            with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as caches:
                caches.write("3")
            status = json.loads(os.getxattr(self.mount.path, "system.pnfsrdma.status"))
            return status["files"]["known_to_kernel"] <= known_at_most
        cluster.wait_until(forgets, 20, "the kernel forgets")

    def test_what_the_kernel_forgets_is_held_as_long_as_the_mount_keeps_it(self):
        path = self.held("forgotten")
        self.make_the_kernel_forget(2)
        _, asked = self.calls(lambda: self.assertEqual(read(path), b"old"))
        self.assertFalse({"OPEN", "CLOSE", "LOOKUP", "DELEGRETURN"} & asked.keys(), asked)
        (self.other / "forgotten").write_bytes(b"new")
        self.assertEqual(read(path), b"new")

    def test_what_the_kernel_forgets_is_returned_if_nothing_is_kept(self):
        kept, self.mount = self.mount, self.cluster.mount(f"{OPTIONS},name_memory=0", name="keeps-nothing")
        try:
            self.held("forgotten-and-returned")
            returned = self.count("DELEGRETURN")
            self.make_the_kernel_forget(2)
            cluster.wait_until(lambda: self.count("DELEGRETURN") > returned, 10, "DELEGRETURN")
            self.mount.unmount()
        finally:
            self.mount = kept

    def test_listings_whose_last_entry_does_not_fit(self):
        """The kernel hears nothing of that entry: its file keeps what it has, and later it is forgotten all the same."""
        (self.mount / "listed").mkdir()
        paths = [self.mount / f"listed/{number}" for number in range(60)]
        for path in paths:
            path.write_bytes(b"old")
        self.mount.wait_until_quiet()
        granted = self.count("delegations_granted")
        for _ in range(2):
            for path in paths:
                read(path)
        self.assertEqual(self.count("delegations_granted"), granted + len(paths))
        listed = self.count("READDIR")
        for number in range(5):
            (self.mount / f"listed/new.{number}").write_bytes(b"")  # which ends what the kernel keeps of the listing
            for name in os.listdir(self.mount / "listed"):
                (self.mount / "listed" / name).stat()
        self.assertGreaterEqual(self.count("READDIR"), listed + 5)
        _, asked = self.calls(lambda: [read(path) for path in paths])
        # Not for any number of calls: a kernel that is short of memory reads a page again, by the layout.
        self.assertFalse({"OPEN", "CLOSE", "LOOKUP", "DELEGRETURN"} & asked.keys(), asked)
        self.make_the_kernel_forget(10)

    def test_whose_rights_change_is_asked_for_while_they_do_and_behind_it(self):
        """What the server has said of a reader beside a chmod may be older than that."""
        path = self.held("rights")
        path.chmod(0o604)

        def opens():
            before = self.count("OPEN")
            subprocess.run(["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "cat", path],
                           capture_output=True, check=True)
            return self.count("OPEN") - before
        self.assertEqual(opens(), 1)
        self.assertEqual(opens(), 0)
        third = self.cluster.mount(OPTIONS, name="c")
        try:
            for _ in range(2):
                read(third / "rights")
            self.assertEqual(third.statistics()["delegations_granted"], 1)
            third.process.send_signal(signal.SIGSTOP)
            try:
                # The server does not change the mode before the third has returned what it holds.
                changing = subprocess.Popen(["chmod", "0644", path])
                time.sleep(0.5)
                self.assertIsNone(changing.poll())
                self.assertEqual(opens(), 1, "not by what was known before")
                self.assertIsNone(changing.poll())
            finally:
                third.process.send_signal(signal.SIGCONT)
            self.assertEqual(changing.wait(), 0)
            self.assertEqual(opens(), 1, "not by what was said meanwhile")
            self.assertEqual(opens(), 0)
        finally:
            third.unmount()

    def test_a_restart_of_the_server(self):
        path = self.held("kept")
        self.cluster.kill("mds")
        self.cluster.start_mds()
        self.assertEqual(read(path), b"old")
        (self.other / "kept").write_bytes(b"new")
        self.assertEqual(read(path), b"new")

    def test_a_host_that_is_stopped_for_longer_than_a_lease(self):
        """Its delegation is revoked, the other one goes on, and nothing old is read afterwards."""
        path = self.held("revoked")
        stopped = self.mount.process
        stopped.send_signal(signal.SIGSTOP)
        try:
            (self.other / "revoked").write_bytes(b"new")
        finally:
            stopped.send_signal(signal.SIGCONT)
        self.assertEqual(read(path), b"new")
        # The server has nothing against this client any more: what is given now is used.
        self.held("behind")
        self.assertEqual(self.calls(lambda: read(self.mount / "behind")), (0, {}))


def open_and_close(path):
    os.close(os.open(path, os.O_RDWR))


class ToWrite(Delegations):
    def held(self, name, content=b"old"):
        """A file of which the mount has a write delegation."""
        path = self.mount / name
        path.write_bytes(content)
        granted = self.count("delegations_granted_to_write")
        open_and_close(path)
        self.mount.wait_until_quiet()
        self.assertEqual(self.count("delegations_granted_to_write"), granted)
        open_and_close(path)
        self.assertEqual(self.count("delegations_granted_to_write"), granted + 1)
        return path

    def recalled(self):
        return self.count("delegations_recalled")

    def test_open_close_and_stat_ask_nobody(self):
        path = self.held("held")

        def work():
            for flags in (os.O_RDWR, os.O_RDONLY, os.O_WRONLY) * 10:
                os.close(os.open(path, flags))
                path.stat()
        self.assertEqual(self.calls(work), (0, {}))

    def test_what_is_written_under_it_is_read_elsewhere(self):
        for size in (300, 100_000):
            path = self.held(f"written.{size}")
            for round_number in range(3):
                content = bytes([round_number + 1]) * size
                with open(path, "r+b") as writer:
                    writer.write(content)
                self.assertEqual(read(path), content)
            self.assertEqual(self.count("delegations_granted_to_write") > 0, True)
            self.assertEqual(read(self.other / path.name), content)

    def test_who_looks_at_it_elsewhere_sees_its_length_and_takes_nothing_away(self):
        path = self.held("grows")
        recalled = self.recalled()
        with open(path, "r+b", buffering=0) as writer:
            writer.seek(0, os.SEEK_END)
            for number in range(1, 6):
                writer.write(bytes(50_000))
                self.assertEqual((self.other / "grows").stat().st_size, 3 + 50_000 * number)
        self.assertEqual((self.other / "grows").stat().st_size, 250_003)
        self.assertEqual(self.recalled(), recalled)

    def test_its_change_is_seen_elsewhere_by_its_time(self):
        path = self.held("changes", content=b"0" * 5000)
        with open(path, "r+b", buffering=0) as writer:
            before = (self.other / "changes").stat().st_mtime_ns
            writer.write(b"1" * 5000)
            self.assertGreater((self.other / "changes").stat().st_mtime_ns, before)

    def test_another_host_that_opens_it_has_it(self):
        path = self.held("opened")
        recalled = self.recalled()
        self.assertEqual(read(self.other / "opened"), b"old")
        self.assertEqual(self.recalled(), recalled + 1)
        (self.other / "opened").write_bytes(b"new and longer")
        self.assertEqual(read(path), b"new and longer")
        self.assertEqual(path.stat().st_size, 14)

    def test_a_program_that_has_it_open_goes_on_when_it_is_recalled(self):
        path = self.held("kept", content=b"0" * 10)
        with open(path, "r+b", buffering=0) as writer:
            self.assertEqual(read(self.other / "kept"), b"0" * 10)
            writer.write(b"1" * 10)
            os.fsync(writer.fileno())
            self.assertEqual(read(self.other / "kept"), b"1" * 10)

    def test_truncation_removal_and_new_names_elsewhere(self):
        path = self.held("cut", content=b"long enough")
        os.truncate(self.other / "cut", 4)
        self.assertEqual(read(path), b"long")
        path = self.held("before")
        os.rename(self.other / "before", self.other / "after")
        with self.assertRaises(FileNotFoundError):
            read(path)
        self.assertEqual(read(self.mount / "after"), b"old")
        path = self.held("removed")
        (self.other / "removed").unlink()
        with self.assertRaises(FileNotFoundError):
            open_and_close(path)

    def test_who_may_only_read_may_not_write_a_held_file(self):
        path = self.held("guarded")
        path.chmod(0o604)
        open_and_close(path)

        def succeeds(what):
            return subprocess.run(["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "sh", "-c",
                                   what + f" {path}"], capture_output=True, check=False).returncode == 0
        for _ in range(2):
            self.assertTrue(succeeds("cat"))
            self.assertFalse(succeeds("echo x >>"))
        path.chmod(0o606)
        self.assertTrue(succeeds("echo x >>"))
        self.assertEqual(read(self.other / "guarded"), b"oldx\n")

    def test_locks_are_those_of_all_hosts(self):
        path = self.held("locked")
        with open(path, "r+b") as mine:
            fcntl.lockf(mine, fcntl.LOCK_EX)
            with open(self.other / "locked", "r+b") as theirs:
                with self.assertRaises(BlockingIOError):
                    fcntl.lockf(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.lockf(mine, fcntl.LOCK_UN)
                fcntl.lockf(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_a_restart_of_the_server(self):
        path = self.held("restarted")
        self.cluster.kill("mds")
        self.cluster.start_mds()
        with open(path, "r+b") as writer:
            writer.write(b"new")
        self.assertEqual(read(self.other / "restarted"), b"new")

    def test_a_host_that_is_stopped_for_longer_than_a_lease(self):
        path = self.held("revoked")
        stopped = self.mount.process
        stopped.send_signal(signal.SIGSTOP)
        try:
            (self.other / "revoked").write_bytes(b"new")
        finally:
            stopped.send_signal(signal.SIGCONT)
        self.assertEqual(read(path), b"new")
        self.held("behind")

    def test_a_database_of_two_hosts(self):
        """Nothing is lost, whoever has the delegation meanwhile."""
        path = self.mount / "database"
        with sqlite3.connect(path) as database:
            database.execute("create table rows (host text, number integer)")
        database.close()
        program = ("import sqlite3, sys\n"
                   "for number in range(25):\n"
                   "    database = sqlite3.connect(sys.argv[1], timeout=60)\n"
                   "    with database:\n"
                   "        database.execute('insert into rows values (?, ?)', (sys.argv[2], number))\n"
                   "    database.close()\n")
        writers = [subprocess.Popen([sys.executable, "-c", program, str(mount / "database"), name])
                   for name, mount in (("a", self.mount), ("b", self.other), ("c", self.mount))]
        for writer in writers:
            self.assertEqual(writer.wait(timeout=120), 0)
        for mount in (self.mount, self.other):
            database = sqlite3.connect(mount / "database")
            self.assertEqual(database.execute("select host, count(distinct number) from rows group by host").fetchall(),
                             [("a", 25), ("b", 25), ("c", 25)])
            self.assertEqual(database.execute("pragma integrity_check").fetchone(), ("ok",))
            database.close()


class Exports(Delegations):
    """When an export is made inside another, filehandles of before end."""

    def administer(self, *arguments):
        done = subprocess.run([f"{BIN}/pnfsrdma", "--socket", f"{self.cluster.home}/console.sock", *arguments, "--yes"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def held(self, ways):
        """Files of these names, opened with these flags: their paths."""
        paths = [(self.mount / name, flags) for name, flags in ways]

        def open_all():
            for path, flags in paths:
                os.close(os.open(path, flags))
        for path, _ in paths:
            path.write_bytes(b"old")
        for _ in range(3):
            self.mount.wait_until_quiet()
            open_all()
        self.assertEqual(self.calls(open_all), (0, {}))
        return [path for path, _ in paths]

    def test_files_are_opened_and_written_by_the_new_handles(self):
        (self.mount / "folder").mkdir()
        paths = self.held([(f"{folder}{number}.{flags}", flags) for folder in ("", "folder/") for flags in (os.O_RDONLY, os.O_RDWR)
                           for number in range(2)])
        recalled = self.count("delegations_recalled")
        self.administer("export", "create", "/inner")
        # The first to be opened may be sooner than the recall; it is told by an error then, as each that was open.
        cluster.wait_until(lambda: self.count("delegations_recalled") >= recalled + len(paths), 10, "all are recalled")
        for content in (b"new", b"newer"):
            for path in paths:
                with open(path, "r+b") as writer:
                    writer.write(content)
                self.assertEqual(read(path), content)
                self.assertEqual(read(self.other / path.relative_to(self.mount.path)), content)
        self.assertNotIn("delegation-revoked", self.cluster.log("mds"))
        self.administer("export", "remove", "/inner")
        for path in paths:
            self.assertEqual(read(path), b"newer")

    def test_an_export_that_is_made_while_files_are_opened(self):
        paths = self.held([(f"busy.{number}", os.O_RDWR) for number in range(10)])
        for number in range(5):
            self.administer("export", "create", f"/busy{number}")
            end = time.monotonic() + 10
            left = list(paths)
            while left:
                self.assertLess(time.monotonic(), end, "there is an end to errors")
                for path in list(left):
                    try:
                        with open(path, "r+b") as writer:
                            writer.write(b"%d" % number)
                        left.remove(path)
                    except OSError as error:
                        if error.errno != errno.ESTALE:
                            raise
            for path in paths:
                self.assertEqual(read(self.other / path.name), b"%dld" % number)

    def test_an_export_that_becomes_read_only(self):
        path, = self.held([("narrowed", os.O_RDWR)])
        recalled = self.count("delegations_recalled")
        self.administer("export", "edit", "/", "--read-only")
        try:
            cluster.wait_until(lambda: self.count("delegations_recalled") > recalled, 10, "it is recalled")
            with self.assertRaises(OSError) as raised:
                os.open(path, os.O_RDWR)
            self.assertEqual(raised.exception.errno, errno.EROFS)
        finally:
            self.administer("export", "edit", "/", "--read-write")
        open_and_close(path)


class Unmount(unittest.TestCase):
    def test_what_is_held_is_returned(self):
        """Else the next writer would wait for a lease."""
        with cluster.Cluster(BIN, pool_size="1G", lease_seconds=30) as own:
            own.start_all()
            reader, writer = own.mount(OPTIONS, name="a"), own.mount(name="b")
            for number in range(100):
                (reader / str(number)).write_bytes(b"old")
            for _ in range(2):
                for number in range(100):
                    read(reader / str(number))
            granted = reader.statistics()
            # And of the directory; not those that came with the files' creation.
            self.assertIn(granted["delegations_granted"] - granted["delegations_granted_to_write"], (100, 101))
            reader.unmount()
            began = time.monotonic()
            for number in range(100):
                (writer / str(number)).write_bytes(b"new")
            self.assertLess(time.monotonic() - began, 15)
            writer.unmount()


if __name__ == "__main__":
    unittest.main()
