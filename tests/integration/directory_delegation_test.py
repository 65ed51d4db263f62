#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Delegations of directories of the mount: which calls they spare, and that nobody sees an old name because of one.

usage: directory_delegation_test.py BIN_DIRECTORY
"""
import os
import pathlib
import subprocess
import sys
import time
import unittest

from renameat2 import EXCHANGE, renameat2
from two_mounts import TwoMounts

BIN = sys.argv.pop(1)
FILES = 300


class OfDirectories(TwoMounts):
    bin = BIN
    daemons = {"pool_size": "1G"}
    options = "acregmin=1,acregmax=1,acdirmin=1,acdirmax=1,flush_after=0,layoutstats_timer=0"

    def held(self, *names, files=FILES):
        """Directories of the other host's, of which this one has listed all and got delegations."""
        for name in names:
            (self.other / name).mkdir()
            for number in range(files):
                (self.other / name / str(number)).touch()
        granted = self.count("delegations_granted")
        for _ in range(2):
            for name in names:
                self.assertEqual(len(os.listdir(self.mount / name)), files)
            time.sleep(1.1)  # longer than a listing is believed without one
        self.assertGreaterEqual(self.count("delegations_granted"), granted + len(names))  # perhaps of the root, too
        return self.mount / names[0]

    def test_names_and_the_listing_cost_nothing_however_long_ago(self):
        directory = os.open(self.held("long-ago"), os.O_RDONLY)  # not of the way to it
        self.addCleanup(os.close, directory)
        time.sleep(1.1)

        def look():
            self.assertEqual(len(os.listdir(directory)), FILES)
            for number in range(20):
                with self.assertRaises(FileNotFoundError):
                    os.stat(f"absent-{number}", dir_fd=directory)
        self.assertEqual(self.calls(look), (0, {}))
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")
        self.assertEqual(self.calls(look), (0, {}))

    def test_attributes_that_have_lapsed_come_by_the_page(self):
        directory = self.held("by-the-page")
        time.sleep(1.1)

        def list_long():
            output = subprocess.run(["ls", "-l", str(directory)], check=True, capture_output=True, text=True)
            self.assertEqual(len(output.stdout.splitlines()), FILES + 1)
        calls, counts = self.calls(list_long)
        self.assertLessEqual(calls, 8, counts)
        self.assertLessEqual(counts.get("LOOKUP", 0), 4, counts)

    def test_what_another_host_changes_is_seen_at_once(self):
        """Each in a directory of its own: one that was recalled is not delegated again so soon."""
        changes = {"create": (lambda there: (there / "new").touch(), {"new": True}),
                   "unlink": (lambda there: os.unlink(there / "1"), {"1": False}),
                   "rename": (lambda there: os.rename(there / "2", there / "renamed"), {"2": False, "renamed": True}),
                   "out": (lambda there: os.rename(there / "3", self.other / "moved"), {"3": False}),
                   "in": (lambda there: os.rename(self.other / "moved", there / "moved"), {"moved": True}),
                   "link": (lambda there: os.link(there / "4", there / "link"), {"link": True}),
                   "mkdir": (lambda there: (there / "below").mkdir(), {"below": True}),
                   "symlink": (lambda there: (there / "symlink").symlink_to("4"), {"symlink": True}),
                   "exchange": (lambda there: renameat2(there / "5", there / "6", EXCHANGE), {}),
                   "chmod": (lambda there: there.chmod(0o711), {})}
        self.held(*changes, files=8)
        inodes = [(self.mount / "exchange" / name).stat().st_ino for name in ("5", "6")]
        recalled = self.count("delegations_recalled")
        for place, (change, seen) in changes.items():
            directory, there = self.mount / place, self.other / place
            names = set(os.listdir(directory))
            for name, is_there in seen.items():
                self.assertEqual(name in names, not is_there, place)
                self.assertEqual((directory / name).exists(), not is_there, place)
            change(there)
            self.assertEqual(set(os.listdir(directory)), set(os.listdir(there)), place)
            if False in seen.values():
                time.sleep(1.1)  # the kernel believes what it has been told
            for name, is_there in seen.items():
                self.assertEqual((directory / name).exists(), is_there, place)
        time.sleep(1.1)
        self.assertEqual([(self.mount / "exchange" / name).stat().st_ino for name in ("6", "5")], inodes)
        self.assertGreaterEqual(self.count("delegations_recalled"), recalled + len(changes))

    def test_own_changes_recall_nothing_and_are_known(self):
        directory = self.held("own", files=20)
        recalled, asked, returned = (self.count(what) for what in ("delegations_recalled", "LOOKUP", "DELEGRETURN"))
        (directory / "new").touch()
        os.unlink(directory / "1")
        os.rename(directory / "2", directory / "renamed")
        (directory / "below").mkdir()
        os.rmdir(directory / "below")
        os.link(directory / "4", directory / "link")
        self.assertTrue((directory / "renamed").exists())
        for name in ("1", "2", "below"):
            self.assertFalse((directory / name).exists(), name)
        time.sleep(1.1)
        for name in ("1", "2", "below"):
            self.assertFalse((directory / name).exists(), name)
        self.assertLessEqual(self.count("LOOKUP"), asked + 3)  # RENAME brings one; of a link's file nothing is known
        self.assertEqual(self.count("delegations_recalled"), recalled)
        self.assertLessEqual(self.count("DELEGRETURN"), returned + 1)  # that of the new file
        self.assertEqual(set(os.listdir(directory)), set(os.listdir(self.other / "own")))

    def test_two_hosts_hold_the_same_one_and_one_changes_it(self):
        directory = self.held("both", files=20)
        for _ in range(2):
            os.listdir(self.other / "both")
        (directory / "new").touch()
        self.assertTrue((self.other / "both" / "new").exists())
        (self.other / "both" / "newer").touch()
        self.assertTrue((directory / "newer").exists())

    def test_a_removed_directory_takes_its_delegation_along(self):
        directory = self.held("removed", files=0)
        returned = self.count("DELEGRETURN")
        os.rmdir(directory)
        self.assertFalse(directory.exists())
        self.mount.wait_until_quiet()
        self.assertEqual(self.count("DELEGRETURN"), returned)
        # Another's goes when it is recalled.
        directory = self.held("removed-elsewhere", files=0)
        os.rmdir(self.other / "removed-elsewhere")
        time.sleep(1.1)  # the kernel believes what it has been told
        self.assertFalse(directory.exists())


if __name__ == "__main__":
    unittest.main()
