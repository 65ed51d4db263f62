#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quotas as people use them: set by the command, met by programs on a mount.

usage: quota_test.py BIN_DIRECTORY
"""
import contextlib
import errno
import json
import os
import subprocess
import sys
import time
import unittest

from cluster import Cluster, wait_until

BIN = sys.argv.pop(1)
KIB, MIB = 1 << 10, 1 << 20
COUNTING_SECONDS = 60
LIMIT = 4 * MIB


class QuotaCase(unittest.TestCase):
    """A server of its own for each test."""

    def setUp(self):
        self.cluster = Cluster(BIN, pool_size="96M", durability="process").start_all()
        self.addCleanup(self.cluster.close)
        self.mount = self.cluster.mount("actimeo=0")
        os.chmod(self.mount.path, 0o755)

    def run_cli(self, *arguments):
        return subprocess.run([f"{BIN}/pnfsrdma", "--socket", f"{self.cluster.home}/console.sock", *map(str, arguments)],
                              capture_output=True, text=True, timeout=120)

    def cli(self, *arguments):
        done = self.run_cli("--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def refused(self, code, *arguments):
        """What is said of it."""
        done = self.run_cli(*arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr

    def wait_until_counted(self):
        wait_until(lambda: self.cli("quota", "status")["state"] == "on", COUNTING_SECONDS, "all is counted")
        wait_until(lambda: all(one["complete"] for one in self.cli("quota", "list")), COUNTING_SECONDS,
                   "what is in the trees is counted")

    def used(self, *whose):
        """Bytes and inodes, when what goes on behind the work is over."""
        self.mount.wait_until_quiet()
        shown = self.cli("quota", "show", *whose)
        return shown["space_used_bytes"], shown["inodes_used"]

    def folder(self, name, user=0):
        folder = self.mount / name
        folder.mkdir()
        os.chown(folder, user, user)
        return folder

    def as_user(self, user, *command):
        """What it says where it fails; None where it does not."""
        done = subprocess.run(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *map(str, command)],
                              capture_output=True, text=True, timeout=120, env={**os.environ, "LC_ALL": "C"})
        return done.stderr if done.returncode != 0 else None

    def write(self, user, path, size):
        return self.as_user(user, "dd", "if=/dev/zero", f"of={path}", "bs=64K", f"count={size // (64 * KIB)}",
                            "conv=fsync", "status=none")

    def make_files(self, user, folder, count):
        return self.as_user(user, "sh", "-c", f'i=0; while [ $i -lt {count} ]; do : >"$0/file$i" || exit 1; i=$((i+1)); done', folder)

    def assert_over(self, said):
        self.assertIsNotNone(said, "nothing was refused")
        self.assertIn("Disk quota exceeded", said)

    @contextlib.contextmanager
    def fails(self, number):
        with self.assertRaises(OSError) as raised:
            yield
        self.assertEqual(errno.errorcode.get(raised.exception.errno), errno.errorcode[number])

    def check_metadata(self):
        """The store alone is as it has to be, its counts included."""
        self.mount.unmount()
        self.cluster.stop("mds")
        checked = self.cluster.run("mdsd", "--config", str(self.cluster.home / "mds.json"), "--check", check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


class Counting(QuotaCase):
    def test_nothing_is_counted_until_it_is_switched_on_and_then_what_is_there(self):
        folder = self.folder("old", user=4001)
        self.assertIsNone(self.write(4001, folder / "data", MIB))
        self.assertEqual(self.cli("quota", "status")["state"], "off")
        self.assertEqual(self.cli("quota", "list"), [])
        self.assertIn("Quotas are off", self.run_cli("quota", "list").stderr)
        self.cli("quota", "on")
        self.wait_until_counted()
        self.assertEqual(self.used("--user", 4001), (MIB, 2))
        self.assertEqual(self.used("--group", 4001), (MIB, 2))
        # From now on each change is.
        self.assertIsNone(self.write(4001, folder / "more", 2 * MIB))
        self.assertEqual(self.used("--user", 4001), (3 * MIB, 3))
        os.truncate(folder / "more", MIB)
        (folder / "data").unlink()
        self.assertEqual(self.used("--user", 4001), (MIB, 2))
        os.chown(folder / "more", 4002, 4001)
        self.assertEqual(self.used("--user", 4001), (0, 1))
        self.assertEqual(self.used("--user", 4002), (MIB, 1))
        self.assertEqual(self.used("--group", 4001), (MIB, 2))
        self.check_metadata()

    def test_a_list_is_a_table_with_names(self):
        self.cli("quota", "set", "--user", "root", "--space-hard", "1G")
        self.wait_until_counted()
        shown = self.run_cli("quota", "list", "--user").stdout
        self.assertRegex(shown, r"KIND +NAME +USED +SOFT +HARD +GRACE +INODES +SOFT +HARD +GRACE")
        self.assertRegex(shown, r"user +root .* 1\.0 GiB")
        self.assertEqual([one["name"] for one in self.cli("quota", "list", "--user")], ["root"])
        self.assertEqual(self.cli("quota", "list", "--over"), [])


class Limits(QuotaCase):
    def test_a_user_does_not_grow_above_a_hard_limit_of_space(self):
        folder = self.folder("limited", user=4001)
        self.cli("quota", "set", "--user", 4001, "--space-hard", LIMIT)
        self.wait_until_counted()
        self.assert_over(self.write(4001, folder / "data", 4 * LIMIT))
        space, _ = self.used("--user", 4001)
        self.assertLessEqual(space, LIMIT)
        self.assertGreater(space, LIMIT - MIB)
        self.assert_over(self.as_user(4001, "fallocate", "-l", 2 * LIMIT, folder / "data"))
        # It is the owner's limit: others are not refused, also not beside it.
        (folder / "of root").write_bytes(b"x" * 2 * LIMIT)
        with self.fails(errno.EDQUOT):
            os.chown(folder / "of root", 4001, -1)
        # What is there is written over, and what was freed is had again.
        self.assertIsNone(self.as_user(4001, "dd", "if=/dev/urandom", f"of={folder / 'data'}", "bs=64K", "count=8",
                                       "conv=notrunc,fsync", "status=none"))
        (folder / "data").unlink()
        self.assertIsNone(self.write(4001, folder / "again", LIMIT // 2))
        self.check_metadata()

    def test_a_user_does_not_grow_above_a_hard_limit_of_inodes(self):
        folder = self.folder("limited", user=4001)
        self.cli("quota", "set", "--user", 4001, "--inodes-hard", 10)
        self.wait_until_counted()
        self.assert_over(self.make_files(4001, folder, 20))
        self.assertEqual(len(os.listdir(folder)), 9)  # and the folder itself
        self.assert_over(self.as_user(4001, "mkdir", folder / "directory"))
        self.assert_over(self.as_user(4001, "ln", "-s", "nowhere", folder / "link"))
        self.assertIsNone(self.as_user(4001, "ln", folder / "file0", folder / "second name"))
        self.assertEqual([one["id"] for one in self.cli("quota", "list", "--over")], [4001])
        (folder / "file1").unlink()
        self.assertIsNone(self.as_user(4001, "mkdir", folder / "directory"))
        self.cli("quota", "remove", "--user", 4001, "--yes")
        self.assertIsNone(self.make_files(4001, folder, 20))
        self.check_metadata()

    def test_a_group_is_limited_whoever_writes(self):
        folder = self.folder("shared")
        os.chown(folder, 0, 4005)
        os.chmod(folder, 0o2777)  # what is made in it is the group's
        self.cli("quota", "set", "--group", 4005, "--space-hard", LIMIT)
        self.wait_until_counted()
        self.assertIsNone(self.write(4001, folder / "one", LIMIT // 2))
        self.assert_over(self.write(4002, folder / "other", LIMIT))
        self.assertLessEqual(self.used("--group", 4005)[0], LIMIT)
        self.check_metadata()

    def test_a_soft_limit_holds_when_the_grace_period_is_over(self):
        folder = self.folder("soft", user=4001)
        self.cli("quota", "grace", "--space", "5s")
        self.cli("quota", "set", "--user", 4001, "--space-soft", "1M")
        self.wait_until_counted()
        self.assertIsNone(self.write(4001, folder / "data", 2 * MIB))
        shown = self.cli("quota", "show", "--user", 4001)
        self.assertIn(shown["space_state"], ("over-soft", "grace-over"))
        self.assertIsNotNone(shown["space_grace_ends"])
        wait_until(lambda: self.cli("quota", "show", "--user", 4001)["space_state"] == "grace-over", 30, "the grace period ends")
        self.assertRegex(self.run_cli("quota", "list", "--over").stdout, r"2\.0 MiB\+ .*expired")
        time.sleep(1)
        self.assert_over(self.write(4001, folder / "more", MIB))
        (folder / "data").unlink()
        with contextlib.suppress(FileNotFoundError):
            (folder / "more").unlink()
        wait_until(lambda: self.cli("quota", "show", "--user", 4001)["space_state"] == "ok", 30, "it is below")
        self.assertIsNone(self.write(4001, folder / "less", MIB // 2))
        self.check_metadata()

    def test_what_makes_no_sense_is_refused_and_changes_nothing(self):
        self.cli("quota", "set", "--user", 4001, "--space-hard", "1M")
        before = self.cli("quota", "show", "--user", 4001)
        self.assertIn("hard limit", self.refused(1, "quota", "set", "--user", 4001, "--space-soft", "2M"))
        self.assertIn("knows no user", self.refused(5, "quota", "set", "--user", "nobody-is-called-so", "--space-hard", "1M"))
        self.assertIn("is no size", self.refused(2, "quota", "set", "--user", 4001, "--space-hard", "much"))
        self.refused(5, "quota", "set", "--tree", "/none", "--space-hard", "1M")
        (self.mount / "file").write_bytes(b"x")
        self.refused(1, "quota", "set", "--tree", "/file", "--space-hard", "1M")
        self.refused(5, "quota", "remove", "--user", 4002, "--yes")
        after = self.cli("quota", "show", "--user", 4001)
        self.assertEqual({**before, "complete": True}, {**after, "complete": True})
        self.assertEqual(self.cli("quota", "list", "--tree"), [])


class Everybody(QuotaCase):
    def mine(self, user, path):
        done = subprocess.run(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", f"{BIN}/pnfsrdma",
                               "--json", "quota", "mine", path], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def test_a_user_sees_his_own_quota_and_nobody_elses(self):
        folder = self.folder("home", user=4001)
        none = self.as_user(4001, f"{BIN}/pnfsrdma", "quota", "mine", folder)
        self.assertIn("tells nothing of quotas", none)
        self.cli("quota", "set", "--user", 4001, "--space-soft", MIB, "--space-hard", LIMIT)
        self.wait_until_counted()
        self.assertIsNone(self.write(4001, folder / "data", 2 * MIB))
        space, _ = self.used("--user", 4001)
        seen = {"space_used_bytes": space, "space_soft_left_bytes": 0, "space_hard_left_bytes": LIMIT - space}
        for path in (folder, folder / "data", self.mount.path):
            self.assertEqual(self.mine(4001, path), seen, path)
        self.assertIsNone(self.mine(4002, folder)["space_hard_left_bytes"])
        self.assertIsNone(self.mine(4002, folder / "data")["space_hard_left_bytes"])
        self.assertEqual(self.mine(0, folder / "data"), seen)
        text = subprocess.run([f"{BIN}/pnfsrdma", "quota", "mine", folder / "data"], capture_output=True, text=True, check=True).stdout
        self.assertRegex(text, r"used +2\.0 MiB")
        self.assertRegex(text, r"left to the hard limit +2\.0 MiB")
        self.assertIn("is not in a pnfsrdma mount", self.refused(5, "quota", "mine", "/proc"))

    def test_limits_of_everybody_are_of_who_has_none_of_his_own(self):
        one, other = self.folder("one", user=4001), self.folder("other", user=4002)
        self.cli("quota", "set", "--default-user", "--space-hard", LIMIT)
        self.cli("quota", "set", "--user", 4002, "--space-hard", 0)
        self.wait_until_counted()
        self.assert_over(self.write(4001, one / "data", 2 * LIMIT))
        self.assertIsNone(self.write(4002, other / "data", 2 * LIMIT))
        self.assertIsNone(self.write(0, self.mount / "of root", 2 * LIMIT))
        self.assertEqual(self.cli("quota", "show", "--user", 4001)["limits_from"], "default")
        self.assertRegex(self.run_cli("quota", "list").stdout, r"user +\(default\) .* 4\.0 MiB")
        self.cluster.stop("mds")
        self.cluster.start_mds()
        self.assertEqual(self.cli("quota", "show", "--default-user")["space_hard_bytes"], LIMIT)
        self.assert_over(self.write(4001, one / "more", 2 * LIMIT))
        self.cli("quota", "remove", "--user", 4002, "--yes")
        self.assert_over(self.write(4002, other / "more", MIB))
        self.refused(5, "quota", "remove", "--user", 4001, "--yes")
        self.cli("quota", "remove", "--default-user", "--yes")
        self.assertIsNone(self.write(4001, one / "more", 2 * LIMIT))
        self.check_metadata()

    def test_all_is_counted_again_beside_changes(self):
        self.refused(6, "quota", "recount")
        self.cli("quota", "on")
        self.wait_until_counted()
        folder = self.folder("busy", user=4001)
        writer = subprocess.Popen(["sh", "-c", 'i=0; while [ $i -lt 400 ]; do echo x >"$0/file$i"; i=$((i+1)); done', folder])
        for _ in range(3):
            self.assertEqual(self.cli("quota", "recount")["message"], "all counts were right")
        self.assertEqual(writer.wait(120), 0)
        self.assertEqual(self.used("--user", 0)[1], 401)
        self.check_metadata()


class Trees(QuotaCase):
    def setUp(self):
        super().setUp()
        self.tree = self.folder("projects")
        os.chmod(self.tree, 0o777)
        (self.tree / "below").mkdir()
        (self.tree / "below" / "before").write_bytes(b"x" * MIB)
        (self.mount / "outside").write_bytes(b"x" * MIB)
        made = self.cli("quota", "set", "--tree", "/projects", "--space-hard", LIMIT, "--inodes-hard", 100)
        self.assertEqual(made["name"], "/projects")
        self.wait_until_counted()

    def test_it_has_all_that_is_in_it(self):
        self.assertEqual(self.used("--tree", "/projects"), (MIB, 3))
        self.assertIsNone(self.write(4001, self.tree / "of another user", MIB))
        self.assertEqual(self.used("--tree", "/projects"), (2 * MIB, 4))
        self.check_metadata()

    def test_root_and_others_are_refused_above_its_limit(self):
        self.assert_over(self.write(0, self.tree / "root's", 4 * LIMIT))
        self.assertLessEqual(self.used("--tree", "/projects")[0], LIMIT)
        self.assert_over(self.write(4001, self.tree / "of another user", LIMIT))
        self.assertIsNone(self.write(0, self.mount / "beside", 2 * LIMIT))
        self.assert_over(self.make_files(0, self.tree, 200))
        self.assertEqual(self.used("--tree", "/projects")[1], 100)
        self.check_metadata()

    def test_df_shows_its_limit(self):
        space = os.statvfs(self.tree / "below")
        self.assertEqual(space.f_blocks * space.f_frsize, LIMIT)
        self.assertEqual(space.f_bavail * space.f_frsize, LIMIT - MIB)
        self.assertEqual((space.f_files, space.f_ffree), (100, 97))
        shown = subprocess.run(["df", "--output=size", "-B1", self.tree], capture_output=True, text=True, check=True).stdout
        self.assertEqual(shown.split()[-1], str(LIMIT))
        outside = os.statvfs(self.mount / "outside")
        self.assertGreater(outside.f_blocks * outside.f_frsize, LIMIT)

    def test_nothing_is_renamed_or_linked_across_its_edge(self):
        inside, outside = self.tree / "below" / "before", self.mount / "outside"
        for source, target in ((inside, self.mount / "out"), (outside, self.tree / "in"), (self.tree / "below", self.mount / "out")):
            with self.fails(errno.EXDEV):
                os.rename(source, target)
        for source, target in ((inside, self.mount / "out"), (outside, self.tree / "in")):
            with self.fails(errno.EXDEV):
                os.link(source, target)
        os.rename(inside, self.tree / "moved")  # within it
        os.link(self.tree / "moved", self.tree / "below" / "second name")
        subprocess.run(["mv", outside, self.tree / "in"], check=True)
        self.assertEqual((self.tree / "in").read_bytes(), b"x" * MIB)
        self.assertFalse(outside.exists())
        self.assertEqual(self.used("--tree", "/projects")[0], 2 * MIB)
        os.rename(self.tree, self.mount / "renamed")  # the tree itself
        self.assertEqual(self.cli("quota", "list", "--tree")[0]["name"], "/renamed")
        self.check_metadata()

    def test_they_do_not_lie_in_each_other(self):
        self.refused(6, "quota", "set", "--tree", "/projects/below", "--space-hard", "1M")
        self.refused(6, "quota", "set", "--tree", "/", "--space-hard", "1M")
        self.assertEqual(len(self.cli("quota", "list", "--tree")), 1)

    def test_removed_it_leaves_its_files_and_no_edge(self):
        self.cli("quota", "remove", "--tree", "/projects", "--yes")
        self.assertEqual(self.cli("quota", "list", "--tree"), [])
        self.refused(5, "quota", "show", "--tree", "/projects")
        self.assertIsNone(self.write(0, self.tree / "much", 2 * LIMIT))
        os.rename(self.tree / "below" / "before", self.mount / "out")
        os.rename(self.mount / "outside", self.tree / "in")
        space = os.statvfs(self.tree)
        self.assertGreater(space.f_blocks * space.f_frsize, LIMIT)
        self.check_metadata()

    def test_a_restart_keeps_all_of_it(self):
        self.cli("quota", "set", "--user", 4001, "--space-soft", "1M", "--inodes-hard", 7)
        self.cli("quota", "grace", "--inodes", "12h")
        folder = self.folder("of a user", user=4001)
        self.assertIsNone(self.write(4001, folder / "data", 2 * MIB))
        self.mount.wait_until_quiet()
        before = self.cli("quota", "list"), self.cli("quota", "status")
        self.cluster.stop("mds")
        self.cluster.start_mds()
        self.assertEqual((self.cli("quota", "list"), self.cli("quota", "status")), before)
        self.assert_over(self.write(0, self.tree / "more", 4 * LIMIT))
        self.assertIsNone(self.write(4001, folder / "more", MIB))
        self.cluster.kill("mds")
        self.cluster.start_mds()
        # What was ahead of the file stays while the mount has its layout, until somebody needs it.
        space, inodes = self.used("--user", 4001)
        self.assertEqual(inodes, 3)
        self.assertGreaterEqual(space, 3 * MIB)
        self.cli("quota", "set", "--user", 4001, "--space-soft", 0, "--space-hard", "4M", "--inodes-hard", 0)
        self.assertIsNone(self.write(4001, folder / "again", MIB))
        self.assertEqual(self.used("--user", 4001), (4 * MIB, 4))
        self.check_metadata()


if __name__ == "__main__":
    unittest.main()
