#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The disk of the metadata is full: nothing new is made, what is there is read and removed, and all goes on by itself.

usage: full_disk_test.py BIN_DIRECTORY
"""
import errno
import itertools
import json
import os
import subprocess
import sys
import unittest

from cluster import Cluster, require_mounts, wait_until

BIN = sys.argv.pop(1)
MIB = 1 << 20
DISK = 48 * MIB
SECONDS = 30
ROUNDS, REMOVED, KEPT = 3, 2500, 50


class FullDisk(unittest.TestCase):
    def setUp(self):
        require_mounts()
        self.cluster = Cluster(BIN, pool_size="256M")
        self.disk = self.cluster.home / "mds"
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(self.disk)],
                                 capture_output=True, text=True)
        if mounted.returncode != 0:
            self.cluster.close()
            self.skipTest(f"no tmpfs can be mounted: {mounted.stderr}")
        self.cluster.start_all()
        self.mount = self.cluster.mount()
        (self.mount / "kept").write_bytes(b"kept" * 1000)

    def tearDown(self):
        try:
            self.cluster.close()
        finally:
            subprocess.run(["umount", "-l", str(self.disk)], capture_output=True)

    def fill(self, leave):
        """Somebody else's file, up to `leave` bytes of room. A disk that is full already has none for its name either."""
        try:
            with open(self.disk / "stranger", "ab") as stranger:
                room = os.statvfs(self.disk)
                more = room.f_bavail * room.f_frsize - leave
                while more > 0:
                    stranger.write(b"x" * min(more, MIB))
                    stranger.flush()
                    more -= MIB
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise

    def make(self, name):
        """None, or the errno."""
        try:
            (self.mount / name).touch()
            return None
        except OSError as error:
            return error.errno

    def begin_to_remove(self, names):
        program = "import os, sys\nfor name in sys.stdin.read().split(): os.unlink(f'{sys.argv[1]}/{name}')"
        removing = subprocess.Popen([sys.executable, "-c", program, str(self.mount.path)], stdin=subprocess.PIPE, text=True)
        removing.stdin.write(" ".join(names))
        removing.stdin.close()
        return removing

    def listed(self):
        return sorted(name for name in os.listdir(self.mount.path) if name.startswith("f"))

    def health(self):
        shown = subprocess.run([f"{BIN}/pnfsrdma", "health", "--json", "--socket", str(self.cluster.home / "console.sock")],
                               capture_output=True, text=True, timeout=60)
        checks = json.loads(shown.stdout)["checks"] if shown.stdout else []
        return next((check["status"] for check in checks if check["name"] == "metadata"), None)

    def lives(self):
        self.assertIsNone(self.cluster.processes["mds"].poll(), self.cluster.log("mds")[-3000:])

    def test_what_others_take_is_refused_to_new_files_only(self):
        self.assertEqual(self.make("first"), None)
        self.fill(leave=7 * MIB)
        wait_until(lambda: self.health() == "warning", SECONDS, "health warns")
        self.fill(leave=3 * MIB)
        wait_until(lambda: self.health() == "failed", SECONDS, "health has failed")
        self.assertEqual(self.make("second"), errno.ENOSPC)
        self.assertEqual((self.mount / "kept").read_bytes(), b"kept" * 1000)
        (self.mount / "first").unlink()
        self.lives()
        (self.disk / "stranger").unlink()
        wait_until(lambda: self.health() == "ok", SECONDS, "health is ok")
        self.assertEqual(self.make("second"), None)

    def test_not_a_byte_left_and_then_room_again(self):
        with open(self.mount.path / "kept", "rb", buffering=0) as kept:
            self.fill_and_remove(kept)

    def fill_and_remove(self, kept):
        files = [f"f{i:04}{'n' * 200}" for i in range(ROUNDS * REMOVED + KEPT)]
        for name in files:
            self.assertIsNone(self.make(name))
        self.fill(leave=0)
        names = (f"new{i}" for i in itertools.count())
        wait_until(lambda: self.make(next(names)) == errno.ENOSPC, SECONDS, "new files are refused")
        # The reserve has been given up by now: that is taken, too, until the log itself meets the end.
        for number in range(ROUNDS):
            self.fill(leave=0)
            removing = self.begin_to_remove(files[number * REMOVED:(number + 1) * REMOVED])
            try:
                removing.wait(timeout=5)
            except subprocess.TimeoutExpired:
                pass  # it waits, and is not refused
            self.lives()
            # An OPEN would wait: it is on record before it is answered.
            self.assertEqual(os.pread(kept.fileno(), 4000, 0), b"kept" * 1000)
            os.truncate(self.disk / "stranger", 0)
            self.assertEqual(removing.wait(timeout=SECONDS), 0)
        self.assertIn("the metadata disk is full", self.cluster.log("mds"))
        wait_until(lambda: self.make("new") is None, SECONDS, "new files are made again")
        self.lives()
        left = files[ROUNDS * REMOVED:]
        self.assertEqual(self.listed(), left)
        # What was answered is there after a restart, too.
        self.cluster.kill("mds")
        self.cluster.start_mds()
        self.assertEqual(self.listed(), left)
        self.assertTrue((self.mount / "new").exists())

    def test_what_its_own_files_took_is_there_again_when_they_are_removed(self):
        long = "n" * 240
        count = 0
        while self.make(f"{count:06}{long}") is None:
            count += 1
            self.assertLess(count, 200_000)
        self.assertEqual(self.make("another"), errno.ENOSPC)
        self.lives()
        for i in range(count):
            (self.mount / f"{i:06}{long}").unlink()
        wait_until(lambda: self.make("another") is None, SECONDS, "new files are made again")
        self.lives()


if __name__ == "__main__":
    unittest.main()
