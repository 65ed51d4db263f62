#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Snapshots as people use them: taken and removed by the command, read below .snapshots of a mount.

usage: snapshot_test.py BIN_DIRECTORY [--changes N]
"""
import errno
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import threading
import time
import unittest

import cluster
from snapshot_case import ACL, ACL_VALUE, LIST, MIB, SnapshotCase, tree

SnapshotCase.bin = sys.argv.pop(1)
CHANGES = 200
if "--changes" in sys.argv:
    at = sys.argv.index("--changes")
    CHANGES = int(sys.argv[at + 1])
    del sys.argv[at:at + 2]


class Snapshots(SnapshotCase):
    # --- what is in them ---

    def test_what_changes_later_is_there_as_it_was(self):
        for name in ("written", "cut", "appended", "mapped", "removed", "renamed", "replaced", "moded", "punched"):
            self.make(name, 3 * MIB + 123)
        (self.folder / "small").write_bytes(b"small")
        (self.folder / "link").symlink_to("small")
        os.link(self.folder / "small", self.folder / "second")
        os.mkfifo(self.folder / "fifo")
        (self.folder / "below").mkdir(mode=0o700)
        (self.folder / "below" / "file").write_bytes(b"x" * 5000)
        os.setxattr(self.folder / "small", "user.kind", b"old")
        os.setxattr(self.folder / "moded", ACL, ACL_VALUE)
        before = tree(self.folder)
        self.take("before")
        self.assertEqual(tree(self.of("before")), before)

        with open(self.folder / "written", "rb+", buffering=0) as file:
            os.pwrite(file.fileno(), b"new" * 1000, MIB)
        os.truncate(self.folder / "cut", 4097)
        with open(self.folder / "appended", "ab") as file:
            file.write(b"more" * 5000)
        with open(self.folder / "mapped", "rb+") as file, mmap.mmap(file.fileno(), 0) as mapping:
            mapping[2 * MIB:2 * MIB + 6] = b"mapped"
            mapping.flush()
        (self.folder / "removed").unlink()
        (self.folder / "renamed").rename(self.folder / "other")
        (self.folder / "small").rename(self.folder / "replaced")
        os.chmod(self.folder / "moded", 0o600)
        os.removexattr(self.folder / "moded", ACL)
        os.setxattr(self.folder / "second", "user.kind", b"new")
        subprocess.run(["fallocate", "-p", "-o", "4096", "-l", str(MIB), str(self.folder / "punched")], check=True)
        (self.folder / "below" / "file").unlink()
        (self.folder / "below").rmdir()
        (self.folder / "new").write_bytes(b"new")
        after = tree(self.folder)
        self.assertNotEqual(after, before)
        for mount in (self.mount, self.other):
            self.assertEqual(tree(self.of("before", mount)), before)
        self.take("after")
        self.assertEqual(tree(self.of("after")), after)
        self.assertEqual(tree(self.of("before", self.other)), before)

    def test_a_writer_goes_on_and_what_he_was_told_is_in_it(self):
        path = self.other / self.name / "log"
        acknowledged, begun, stop = [0], [0], threading.Event()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT)

        def write():
            number = 0
            while not stop.is_set():
                begun[0] = number + 1
                os.pwrite(descriptor, struct.pack("<Q", number + 1), number * 8)
                os.fsync(descriptor)
                number += 1
                acknowledged[0] = number

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for round_number in range(5):
                cluster.wait_until(lambda: acknowledged[0] > round_number * 50, 60, "the writer writes")
                told = acknowledged[0]
                self.take(f"round{round_number}")
                last = begun[0]
                content = (self.of(f"round{round_number}") / "log").read_bytes()
                count = len(content) // 8
                self.assertGreaterEqual(count, told)
                self.assertLessEqual(count, last)
                self.assertEqual(content, struct.pack(f"<{count}Q", *range(1, count + 1)))
        finally:
            stop.set()
            writer.join()
            os.close(descriptor)
        self.assertEqual(len(path.read_bytes()), acknowledged[0] * 8)

    def test_by_force_a_stopped_mount_holds_nobody_up(self):
        stopped = self.cluster.mount("actimeo=0", name="stopped")
        self.addCleanup(stopped.unmount)
        _, content = self.make("other", MIB)
        path = stopped / self.name / "held"
        path.write_bytes(b"a" * MIB)
        held = cluster.OpenFile(path)
        self.addCleanup(held.close)
        held.write(b"durable")
        held.fsync()
        held.write(b"not flushed", 4096)
        stopped.process.send_signal(signal.SIGSTOP)
        try:
            refused = self.cli("snapshot", "create", "patient", code=1)
            self.assertIn("nothing has changed", refused)
            self.assertIn("--force", refused)
            self.assertEqual(self.cli("snapshot", "list"), [])
            taken = self.cli("snapshot", "create", "forced", "--force")
        finally:
            stopped.process.send_signal(signal.SIGCONT)
        self.assertEqual([one["layouts"] for one in taken["revoked"]], [1])
        client = taken["revoked"][0]
        self.assertTrue(client["name"])
        self.assertIn(f"snapshot-forced name=\"forced\" client={int(client['client'], 16):#x}", self.cluster.log("mds"))
        self.assertTrue((self.of("forced") / "other").read_bytes() == content)
        self.assertEqual((self.of("forced") / "held").read_bytes()[:7], b"durable")
        # What he had written is there, or he is told that it is not; and he goes on.
        try:
            held.fsync()
            self.assertEqual((self.folder / "held").read_bytes()[4096:4107], b"not flushed")
        except OSError as error:
            self.assertEqual(error.errno, errno.EIO)
        held.write(b"goes on", 8192)
        held.fsync()
        self.assertEqual((self.folder / "held").read_bytes()[8192:8199], b"goes on")
        self.assertNotEqual((self.of("forced") / "held").read_bytes()[8192:8199], b"goes on")
        self.assertNotIn("revoked", self.cli("snapshot", "create", "nobody", "--force"))

    def test_many_changes_and_snapshots_between_them(self):
        seed = random.randrange(1 << 32)
        dice = random.Random(seed)
        saved = {}
        files = []
        for number in range(CHANGES):
            self.change(dice, files, number)
            if number % (CHANGES // 5) == CHANGES // 10:
                name = f"at{number}"
                saved[name] = tree(self.folder)
                self.take(name)
            if saved and number % (CHANGES // 4) == 0:
                name = dice.choice(list(saved))
                self.assertEqual(tree(self.of(name, dice.choice((self.mount, self.other)))), saved[name], f"seed {seed}")
        now = tree(self.folder)
        gone = dice.choice(list(saved))
        del saved[gone]
        self.remove(gone)
        for name, was in saved.items():
            self.assertEqual(tree(self.of(name, self.other)), was, f"{name}, seed {seed}")
        self.assertEqual(tree(self.folder), now, f"seed {seed}")

    def change(self, dice, files, number):
        kind = dice.randrange(9) if files else 0
        path = dice.choice(files) if files else None
        if kind <= 1:
            path = self.folder / f"f{number}"
            path.write_bytes(dice.randbytes(dice.choice((10, 5000, 300_000, 3 * MIB))))
            files.append(path)
        elif kind == 2:
            with open(path, "rb+", buffering=0) as file:
                os.pwrite(file.fileno(), dice.randbytes(dice.randrange(1, 20_000)), dice.randrange(0, 2 * MIB))
        elif kind == 3:
            os.truncate(path, dice.randrange(0, 2 * MIB))
        elif kind == 4:
            path.unlink()
            files.remove(path)
        elif kind == 5:
            new = self.folder / f"r{number}"
            path.rename(new)
            files[files.index(path)] = new
        elif kind == 6:
            path.chmod(dice.choice((0o600, 0o644, 0o755)))
            os.setxattr(path, "user.number", str(number).encode())
        elif kind == 7:
            os.setxattr(path, ACL, ACL_VALUE)
        else:
            new = self.folder / f"c{number}"
            subprocess.run(["cp", "-a", path, new], check=True)
            files.append(new)

    def test_they_outlive_the_server(self):
        self.make("file", 5 * MIB)
        before = tree(self.folder)
        self.take("first")
        os.truncate(self.folder / "file", 100)
        between = tree(self.folder)
        self.take("second")
        (self.folder / "file").unlink()
        self.cluster.stop("mds")
        self.cluster.start_mds()
        self.assertEqual(tree(self.of("first")), before)
        self.assertEqual(tree(self.of("second")), between)
        self.make("another", MIB)
        self.cluster.kill("mds")
        self.cluster.start_mds()
        self.assertEqual(tree(self.of("first")), before)
        self.assertEqual(tree(self.of("second", self.other)), between)
        self.assertEqual([one["name"] for one in self.cli("snapshot", "list")], ["first", "second"])

    # --- how they look ---

    def test_an_export_made_inside_of_another_one_holds_nothing_up(self):
        """It ends the handles of the outer one, and not the layouts that clients have under them."""
        self.make("closed", 3 * MIB)
        open_file, _ = self.make("open", MIB)
        with open_file.open("r+b") as writer:
            os.pwrite(writer.fileno(), b"before", 0)
            os.fsync(writer.fileno())
            (self.folder / "inner").mkdir()
            made = self.cli("export", "create", f"/{self.name}/inner", "--no-root-squash", "--yes")
            self.addCleanup(self.cli, "export", "remove", f"/{self.name}/inner", "--yes")
            self.assertEqual(made["path"], f"/{self.name}/inner")
            begun = time.monotonic()
            self.take("behind")
            self.assertLess(time.monotonic() - begun, 5)
        self.assertEqual((self.of("behind") / "closed").read_bytes(), (self.folder / "closed").read_bytes())

    def test_the_list_comes_with_the_first_one_and_goes_with_the_last(self):
        cached = self.cluster.mount("", name="cached")  # believes what it has seen for some seconds
        self.addCleanup(cached.unmount)
        for mount in (self.mount, cached):
            self.assertNotIn(LIST, os.listdir(mount / "."))
            self.assertFalse((mount / LIST).exists())
        self.take("only")
        for mount in (self.mount, cached):
            self.assertEqual(os.listdir(mount / LIST), ["only"])
            self.assertNotIn(LIST, os.listdir(mount / "."))
        found = subprocess.run(["find", cached.path, "-name", "only"], capture_output=True, text=True, check=True)
        self.assertEqual(found.stdout, "")
        self.assertGreater((cached / LIST / "only").stat().st_ino, 1 << 40)
        self.assertEqual((cached / LIST / "only" / self.name).stat().st_ino & ((1 << 40) - 1), self.folder.stat().st_ino)
        self.assertEqual((cached / LIST / "only").stat().st_dev, cached.path.stat().st_dev)
        self.remove("only")
        self.assertFalse((self.mount / LIST / "only").exists())
        cluster.wait_until(lambda: not (cached / LIST / "only").exists(), 62, "the cached name is forgotten")
        self.assertFalse((self.mount / LIST).exists())

    def test_nothing_in_them_changes(self):
        self.make("file", 10_000)
        with self.fails(errno.EEXIST):
            os.mkdir(self.mount / LIST)
        self.take("fixed")
        inside = self.of("fixed")
        before = tree(inside)
        for flags in (os.O_RDWR, os.O_WRONLY, os.O_RDONLY | os.O_TRUNC):
            with self.fails(errno.EROFS):
                os.open(inside / "file", flags)
        changes = [lambda: os.open(inside / "new", os.O_RDWR | os.O_CREAT), lambda: os.mkdir(inside / "new"),
                   lambda: os.unlink(inside / "file"), lambda: os.rename(inside / "file", inside / "g"),
                   lambda: os.link(inside / "file", inside / "g"), lambda: os.symlink("x", inside / "g"),
                   lambda: os.chmod(inside / "file", 0o777), lambda: os.chown(inside / "file", 7, 7),
                   lambda: os.truncate(inside / "file", 1), lambda: os.utime(inside / "file"),
                   lambda: os.setxattr(inside / "file", "user.x", b"y"), lambda: os.setxattr(inside / "file", ACL, ACL_VALUE),
                   lambda: os.mkdir(self.mount / LIST / "new"), lambda: os.rmdir(self.mount / LIST / "fixed"),
                   lambda: os.rmdir(self.mount / LIST)]
        for number, change in enumerate(changes):
            with self.subTest(change=number), self.fails(errno.EROFS):
                change()
        for change in (lambda: os.rename(inside / "file", self.folder / "g"), lambda: os.link(inside / "file", self.folder / "g")):
            with self.fails(errno.EXDEV):
                change()
        self.assertEqual(tree(inside), before)

    def test_files_are_copied_out(self):
        path, content = self.make("large", 20 * MIB + 77)
        self.take("before")
        path.unlink()
        source = self.of("before") / "large"
        for number, options in enumerate((["--reflink=auto"], ["--reflink=never"], ["-a"])):
            subprocess.run(["cp", *options, source, self.folder / f"copy{number}"], check=True)
            self.assertTrue((self.other / self.name / f"copy{number}").read_bytes() == content)
        with open(source, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapping:
            self.assertTrue(mapping[:] == content)
        with open(source, "rb") as file, open(self.folder / "range", "wb") as target:
            copied = os.copy_file_range(file.fileno(), target.fileno(), MIB, 4096, 0)
        self.assertTrue((self.folder / "range").read_bytes() == content[4096:4096 + copied])
        archive = subprocess.run(["tar", "-C", self.of("before"), "-cf", "-", "."], capture_output=True, check=True).stdout
        self.assertIn(content[:4096], archive)

    def test_files_come_back_without_a_copy(self):
        path, content = self.make("large", 40 * MIB + 77)
        self.take("before")
        source = self.of("before") / "large"
        with open(path, "r+b") as file:
            file.write(bytes(10 * MIB))
        gone = self.used_at_rest()
        subprocess.run(["cp", "--reflink=auto", source, self.folder / "copy"], check=True)
        self.cli("clone", source, self.folder / "clone")
        self.assertLess(self.used_at_rest(), gone + MIB)
        for name in ("copy", "clone"):
            self.assertTrue((self.other / self.name / name).read_bytes() == content, name)
        with open(self.folder / "clone", "r+b") as file:
            file.write(b"changed")
        path.unlink()
        self.take("behind")
        (self.folder / "copy").unlink()
        self.remove("before")
        self.assertTrue((self.folder / "clone").read_bytes() == b"changed" + content[7:])
        self.assertTrue((self.of("behind") / "copy").read_bytes() == content)
        self.assertTrue((self.of("behind") / "clone").read_bytes() == b"changed" + content[7:])
        self.cli("clone", self.of("behind") / "copy", path)
        self.remove("behind")
        self.assertTrue(path.read_bytes() == content)

    # --- space, names ---

    def test_memory_comes_back_when_the_last_one_that_has_it_goes(self):
        cluster.wait_until(lambda: self.cli("snapshot", "list") == [], 60, "those of other tests are gone")
        before = self.used_at_rest()
        self.make("large", 100 * MIB)
        self.take("one")
        self.take("two")
        (self.folder / "large").unlink()
        self.assertGreaterEqual(self.used_at_rest(), before + 99 * MIB)
        self.remove("one")
        self.assertGreaterEqual(self.used_at_rest(), before + 99 * MIB)
        self.assertEqual((self.of("two") / "large").stat().st_size, 100 * MIB)
        self.remove("two")
        cluster.wait_until(lambda: self.used() <= before + MIB, 60, "the memory comes back")
        cluster.wait_until(lambda: self.cli("snapshot", "list") == [], 60, "what was removed is listed no more")

    # --- the schedule ---

    def schedule(self, *options):
        return self.cli("snapshot", "schedule", *options)

    def scheduled(self):
        return [one["name"] for one in self.cli("snapshot", "list") if one["schedule"] == "hourly" and one["state"] == "ready"]

    @staticmethod
    def minute(from_now):
        return time.strftime("%H:%M", time.gmtime(time.time() + 60 * from_now))

    def test_a_schedule_takes_and_deletes_its_own(self):
        self.make("file", 10_000)
        self.assertEqual(self.schedule()["next"], [])
        self.take("hourly-2020-01-01T00-00Z")
        self.addCleanup(self.schedule, "--off")
        asked = self.schedule("--hourly", 1, "--at", self.minute(0))
        self.assertEqual((asked["hourly"], asked["daily"], [one["schedule"] for one in asked["next"]]), (1, 0, ["hourly"]))
        cluster.wait_until(self.scheduled, 20, "the first is taken at once")
        first, = self.scheduled()
        self.assertRegex(first, r"^hourly-\d{4}-\d\d-\d\dT\d\d-\d\dZ$")
        self.assertEqual(tree(self.of(first)), tree(self.folder))
        self.assertIsNone(self.cli("snapshot", "show", "hourly-2020-01-01T00-00Z")["schedule"])

        self.cluster.stop("mds")
        self.cluster.start_mds()
        self.assertEqual(self.schedule()["hourly"], 1)
        time.sleep(20)  # a start looks after 15 s
        self.assertEqual(self.scheduled(), [first])

        self.schedule("--at", self.minute(1))
        cluster.wait_until(lambda: self.scheduled() not in ([first], []), 90, "the next is taken")
        cluster.wait_until(lambda: len(self.scheduled()) == 1, 20, "what is surplus is deleted")
        second, = self.scheduled()
        self.assertNotEqual(second, first)
        self.assertEqual(sorted(os.listdir(self.mount / LIST)), sorted([second, "hourly-2020-01-01T00-00Z"]))
        self.assertEqual([self.schedule()["failure"], self.schedule()["tries_in_vain"]], [None, 0])
        self.assertEqual(self.schedule("--off")["next"], [])
        self.assertEqual(self.scheduled(), [second])

    def test_a_schedule_that_makes_no_sense_is_refused(self):
        self.addCleanup(self.schedule, "--off")
        before = self.schedule()
        self.assertIn("4001 snapshots", self.cli("snapshot", "schedule", "--hourly", 3000, "--daily", 1001, code=1))
        self.cli("snapshot", "schedule", "--hourly", 4001, code=1)
        self.cli("snapshot", "schedule", "--at", "24:00", code=2)
        self.cli("snapshot", "schedule", "--off", "--daily", 1, code=2)
        self.assertEqual(self.schedule(), before)

    def test_a_pinned_one_stays(self):
        self.take("kept")
        self.take("other")
        self.assertEqual([one["pinned"] for one in self.cli("snapshot", "pin", "kept")], [True])
        self.cli("snapshot", "pin", "none", code=5)
        self.assertIn("pinned", self.cli("snapshot", "remove", "other", "kept", "--yes", code=6))
        self.assertEqual([one["name"] for one in self.cli("snapshot", "list")], ["kept", "other"])
        self.cluster.kill("mds")
        self.cluster.start_mds()
        self.assertTrue(self.cli("snapshot", "show", "kept")["pinned"])
        self.assertFalse(self.cli("snapshot", "show", "other")["pinned"])
        self.cli("snapshot", "unpin", "kept")
        self.remove("kept")

    def test_the_command(self):
        first = self.take("first")
        self.assertEqual(first["state"], "ready")
        self.assertIn("already", self.cli("snapshot", "create", "first", code=6))
        self.cli("snapshot", "create", "a/b", code=1)
        self.cli("snapshot", "create", "..", code=1)
        by_time = self.cli("snapshot", "create")
        self.assertRegex(by_time["name"], r"^\d{4}-\d\d-\d\dT\d\d\.\d\d\.\d\dZ$")
        self.assertEqual(self.cli("snapshot", "show", by_time["id"])["name"], by_time["name"])
        self.cli("snapshot", "show", "none", code=5)
        self.assertEqual(sorted(os.listdir(self.mount / LIST)), sorted(["first", by_time["name"]]))
        self.cli("snapshot", "delete", "first", by_time["name"], "--yes")
        self.assertFalse((self.mount / LIST).exists())
        cluster.wait_until(lambda: self.cli("snapshot", "list") == [], 60, "their names are free")
        self.assertGreater(self.take("first")["id"], by_time["id"])
        self.cli("health")


if __name__ == "__main__":
    unittest.main(verbosity=2)
