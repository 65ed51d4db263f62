#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`pnfsrdma diff` and `pnfsrdma restore` on real mounts.

usage: restore_test.py BIN_DIRECTORY
"""
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import unittest

import cluster
from snapshot_case import ACL, ACL_VALUE, LIST, MIB, SnapshotCase, tree

SnapshotCase.bin = sys.argv.pop(1)
LEFTOVER = ".pnfsrdma-restore-"
USER = 4711


class Restore(SnapshotCase):
    def command(self, *arguments, code=0, user=None):
        who = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        done = subprocess.run([*who, f"{self.bin}/pnfsrdma", *map(str, arguments)], capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def diff(self, before, after, *options):
        """{(kind, path)}, {path: what}"""
        done = subprocess.run([f"{self.bin}/pnfsrdma", "diff", "--json", before, after, *options], capture_output=True,
                              text=True, timeout=300)
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        found = json.loads(done.stdout)["differences"]
        self.assertEqual(done.returncode, 1 if found else 0)
        for one in found:
            self.assertEqual("to" in one, one["kind"] == "renamed")
        return ({(one["kind"], one["path"] + (f" -> {one['to']}" if "to" in one else "")) for one in found},
                {one["path"]: one["what"] for one in found if "what" in one})

    def restore(self, snapshot, *options, code=0, user=None):
        return json.loads(self.command("restore", self.of(snapshot), *options, "--yes", "--json", code=code, user=user).stdout)

    def groups(self, top):
        """Which names are one file."""
        found = {}
        for folder, _, files in os.walk(top):
            for name in files:
                path = os.path.join(folder, name)
                found.setdefault(os.lstat(path).st_ino, set()).add(os.path.relpath(path, top))
        return sorted(map(sorted, found.values()))

    def names_below(self):
        return sum(len(files) for _, _, files in os.walk(self.folder))

    def fill(self):
        """One of each."""
        self.make("written", 3 * MIB + 5)
        self.make("removed", 2 * MIB)
        self.make("moved", 20_000)
        self.make("same", 5 * MIB)
        self.make("linked", 100_000)
        os.link(self.folder / "linked", self.folder / "second")
        (self.folder / "below").mkdir(mode=0o750)
        (self.folder / "below" / "deep").mkdir()
        os.link(self.folder / "linked", self.folder / "below" / "third")
        self.make("below/file", 4321)
        (self.folder / "link").symlink_to("below/file")
        os.lchown(self.folder / "link", 7, 8)
        with open(self.folder / "sparse", "wb") as file:
            os.pwrite(file.fileno(), b"end", 64 * MIB)
        (self.folder / "empty").touch()
        os.mkfifo(self.folder / "fifo", 0o640)
        os.mknod(self.folder / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        os.setxattr(self.folder / "written", "user.kind", b"old")
        os.setxattr(self.folder / "below", "user.kind", b"directory")
        os.setxattr(self.folder / "removed", ACL, ACL_VALUE)
        os.setxattr(self.folder / "below", "system.posix_acl_default", ACL_VALUE)
        os.chown(self.folder / "removed", 1001, 1002)
        os.chmod(self.folder / "same", 0o4755)
        os.utime(self.folder / "removed", ns=(1_000_000_001, 2_000_000_002))

    def change(self):
        with open(self.folder / "written", "rb+", buffering=0) as file:
            os.pwrite(file.fileno(), b"new" * 1000, MIB)
        os.setxattr(self.folder / "written", "user.kind", b"new")
        (self.folder / "removed").unlink()
        (self.folder / "moved").rename(self.folder / "below" / "here")
        os.chmod(self.folder / "same", 0o600)
        (self.folder / "second").unlink()
        (self.folder / "second").write_bytes(b"no link any more")
        with open(self.folder / "linked", "ab") as file:
            file.write(b"more")
        shutil.rmtree(self.folder / "below" / "deep")
        (self.folder / "below" / "deep").write_bytes(b"a file now")
        os.removexattr(self.folder / "below", "system.posix_acl_default")
        (self.folder / "link").unlink()
        (self.folder / "link").symlink_to("written")
        os.truncate(self.folder / "sparse", 10)
        (self.folder / "fifo").unlink()
        (self.folder / "device").unlink()
        os.mknod(self.folder / "device", stat.S_IFCHR | 0o600, os.makedev(1, 5))
        (self.folder / "new").write_bytes(b"new")
        (self.folder / "new directory").mkdir()
        (self.folder / "new directory" / "file").write_bytes(b"new")

    # --- diff ---

    def test_what_differs_is_named_once(self):
        self.fill()
        self.take("before")
        self.assertEqual(self.diff(self.of("before"), self.folder), (set(), {}))
        self.change()
        kinds, what = self.diff(self.of("before"), self.folder)
        self.assertEqual(kinds, {
            ("modified", "written"), ("removed", "removed"), ("renamed", "moved -> below/here"), ("attributes", "same"),
            ("modified", "second"), ("modified", "linked"), ("modified", "below/deep"), ("modified", "below/third"),
            ("attributes", "below/"), ("modified", "link"), ("modified", "sparse"), ("removed", "fifo"), ("modified", "device"),
            ("added", "new"), ("added", "new directory/"), ("added", "new directory/file")})
        self.assertEqual(what["same"], ["mode"])
        self.assertEqual(what["written"], ["data", "attributes"])
        self.assertEqual(what["below/deep"], ["type"])
        self.assertEqual(what["below/"], ["acl"])
        self.assertEqual(what["link"], ["target", "owner"])
        self.assertEqual(what["device"], ["device"])
        self.assertIn("links", what["second"])
        # The same the other way round, by the other mount, and between two snapshots.
        self.take("after")
        self.assertEqual(self.diff(self.of("before", self.other), self.of("after", self.other)), (kinds, what))
        back, _ = self.diff(self.of("after"), self.of("before"))
        self.assertIn(("renamed", "below/here -> moved"), back)
        self.assertIn(("added", "removed"), back)

    def test_no_byte_is_read_unless_it_is_asked_for(self):
        _, content = self.make("touched", 10 * MIB)
        self.make("same", 10 * MIB)
        self.make("moded", 10 * MIB)
        self.take("before")
        os.utime(self.folder / "touched", ns=(5, 5))
        status = os.stat(self.folder / "moded")
        with open(self.folder / "moded", "rb+", buffering=0) as file:
            os.pwrite(file.fileno(), b"x", 9 * MIB)
        os.utime(self.folder / "moded", ns=(status.st_atime_ns, status.st_mtime_ns))
        mount = self.cluster.mount("actimeo=0", name="counting")
        self.addCleanup(mount.unmount)
        before = mount.statistics()
        kinds, what = self.diff(self.of("before", mount), mount / self.name)
        self.assertEqual((kinds, what), ({("modified", "touched")}, {"touched": ["data"]}))
        after = mount.statistics()
        self.assertEqual(after["mds_operations"].get("OPEN", 0), before["mds_operations"].get("OPEN", 0), "no file was opened")
        kinds, what = self.diff(self.of("before", mount), mount / self.name, "--content")
        self.assertEqual((kinds, what), ({("attributes", "touched"), ("modified", "moded")},
                                         {"touched": ["times"], "moded": ["data"]}))

    def test_a_renamed_directory_is_one_line(self):
        (self.folder / "old" / "deep").mkdir(parents=True)
        for name in ("old/a", "old/deep/b", "old/deep/c", "old/replaced"):
            self.make(name, 1000)
        self.take("before")
        (self.folder / "old").rename(self.folder / "new")
        self.make("new/deep/c", 1001)
        self.make("fresh", 1000)
        (self.folder / "fresh").rename(self.folder / "new" / "replaced")
        kinds, _ = self.diff(self.of("before"), self.folder)
        self.assertEqual(kinds, {("renamed", "old/ -> new/"), ("modified", "new/deep/c"), ("modified", "new/replaced")})

    def test_its_exit_codes_are_those_of_diff(self):
        self.make("file", 100)
        self.take("before")
        self.command("diff", self.of("before") / "file", self.folder / "file", code=0)
        self.make("file", 100)
        self.assertEqual(self.command("diff", self.of("before") / "file", self.folder / "file", code=1).stdout,
                         "modified    file  (data)\n")
        self.command("diff", self.of("before") / "none", self.folder / "file", code=2)
        self.command("diff", self.of("before"), self.folder / "file", code=2)
        (self.folder / "secret").mkdir(mode=0o700)
        refused = self.command("diff", self.of("before"), self.folder, code=2, user=USER)
        self.assertIn("added       secret/", refused.stdout)
        self.assertIn("secret: ", refused.stderr)

    # --- restore ---

    def test_a_tree_becomes_what_it_was(self):
        self.fill()
        was, groups = tree(self.folder), self.groups(self.folder)
        times = {path: os.lstat(self.folder / path).st_mtime_ns for path in (*was, ".")}
        self.take("before")
        self.change()
        used = self.used_at_rest()
        # A file that another mount has open: who has it goes on with what he has.
        reader = open(self.other / self.name / "written", "rb")
        changed = (self.folder / "written").read_bytes()
        kinds, _ = self.diff(self.of("before"), self.folder)
        dry = json.loads(self.command("restore", self.of("before"), "--dry-run", "--json", code=1).stdout)
        self.assertEqual(len(dry["differences"]), len(kinds))
        self.assertEqual(self.diff(self.of("before"), self.folder)[0], kinds, "a dry run changes nothing")

        done = self.restore("before")
        self.assertEqual((done["problems"], done["bytes_copied"], done["removed"], done["kept"]), ([], 0, 0, 3))
        self.assertEqual(self.diff(self.of("before"), self.folder)[0],
                         {("added", "new"), ("added", "new directory/"), ("added", "new directory/file"), ("added", "below/here")})
        self.assertTrue(reader.read() == changed)
        reader.close()
        done = self.restore("before", "--delete")
        self.assertEqual((done["removed"], done["files"], done["links"]), (4, 0, 0))
        for mount in (self.mount, self.other):
            self.assertEqual(tree(mount / self.name), was)
            self.assertEqual(self.groups(mount / self.name), groups)
        self.assertEqual({path: os.lstat(self.folder / path).st_mtime_ns for path in times}, times)
        self.assertEqual(os.stat(self.folder / "sparse").st_blocks, os.stat(self.of("before") / "sparse").st_blocks)
        self.assertLess(self.used_at_rest(), used + MIB, "the memory is that of the snapshot")
        self.assertEqual(self.diff(self.of("before"), self.folder, "--content"), (set(), {}))
        done = self.restore("before")
        self.assertFalse(any(done[count] for count in ("files", "links", "directories", "attributes", "removed", "kept")))

    def test_a_file_comes_back_alone_and_to_another_place(self):
        path, content = self.make("file", MIB + 1)
        os.setxattr(path, "user.kind", b"old")
        (self.folder / "below").mkdir()
        self.make("below/other", 1000)
        self.take("before")
        status = os.stat(path)
        path.write_bytes(b"changed")
        self.command("restore", self.of("before") / "file", "--yes")
        self.assertTrue((self.other / self.name / "file").read_bytes() == content)
        self.assertEqual((os.stat(path).st_mtime_ns, os.getxattr(path, "user.kind")), (status.st_mtime_ns, b"old"))
        # Nothing is lost, so nobody is asked.
        self.command("restore", self.of("before") / "file", self.folder / "copy")
        self.assertTrue((self.folder / "copy").read_bytes() == content)
        self.command("restore", self.of("before") / "below", self.folder / "elsewhere")
        self.assertEqual(tree(self.folder / "elsewhere"), tree(self.folder / "below"))
        shutil.rmtree(self.folder / "below")
        self.command("restore", self.of("before") / "below")
        self.assertEqual(tree(self.folder / "below"), tree(self.folder / "elsewhere"))

    def test_the_whole_mount_goes_back(self):
        self.make("file", 1000)
        self.take("before")
        self.make("file", 2000)
        (self.mount / "new at the top").mkdir()
        self.command("restore", self.mount / LIST / "before", "--delete", "--yes")
        self.assertEqual(tree(self.mount.path), tree(self.mount / LIST / "before"))
        self.assertEqual(self.diff(self.mount / LIST / "before", self.mount.path), (set(), {}))

    def test_what_ended_in_the_middle_goes_on(self):
        for number in range(300):
            (self.folder / f"d{number % 7}").mkdir(exist_ok=True)
            self.make(f"d{number % 7}/f{number}", 1000 + number)
        was = tree(self.folder)
        self.take("before")
        for number in range(0, 300, 2):
            self.make(f"d{number % 7}/f{number}", 999)
        for number in range(1, 300, 2):
            (self.folder / f"d{number % 7}" / f"f{number}").unlink()
        for number in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
            process = subprocess.Popen([f"{self.bin}/pnfsrdma", "restore", self.of("before"), "--yes"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            names = self.names_below()
            cluster.wait_until(lambda: self.names_below() > names + 10, 60, "some files are back")
            process.send_signal(number)
            _, complaint = process.communicate(timeout=60)
            self.assertIn(process.returncode, (-signal.SIGKILL, 130), complaint)
            if number == signal.SIGINT:
                self.assertIn("interrupted", complaint)
        left, _ = self.diff(self.of("before"), self.folder)
        self.assertTrue(left)
        (self.folder / "d0" / f"{LEFTOVER}0123abcd").write_bytes(b"of one that was killed")
        self.restore("before")
        self.assertEqual(tree(self.folder), was)

    def test_a_user_restores_what_is_his(self):
        os.chown(self.folder, USER, USER)
        for name, owner in (("own", USER), ("of-root", 0)):
            self.make(name, 5000)
            os.chown(self.folder / name, owner, owner)
        (self.folder / "secret").mkdir(mode=0o700)
        self.make("secret/file", 1000)
        was = tree(self.folder)
        self.take("before")
        for name in ("own", "of-root"):
            self.make(name, 6000)
        changed = (self.folder / "of-root").read_bytes()
        (self.folder / "secret" / "file").unlink()
        done = self.restore("before", code=1, user=USER)
        self.assertEqual({one["path"] for one in done["problems"]}, {"of-root", "secret"})
        self.assertTrue((self.folder / "of-root").read_bytes() == changed)
        self.assertEqual(tree(self.folder)["own"], was["own"])
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith(LEFTOVER)])
        self.restore("before")
        self.assertEqual(tree(self.folder), was)

    def test_what_makes_no_sense_is_refused_and_changes_nothing(self):
        self.make("file", 1000)
        (self.folder / "directory").mkdir()
        self.take("before")
        self.make("file", 2000)
        now = tree(self.folder)
        other = self.of("before", self.other)
        for number, (arguments, reason) in enumerate((
                ((self.folder / "file",), "not in a snapshot"), ((self.mount / LIST,), "name one"),
                ((self.mount / LIST / "none" / "file",), "No such file"),
                ((self.of("before") / "file", self.of("before") / "x"), "never changes"),
                ((self.of("before") / "file", self.mount / LIST / "x"), "never changes"),
                ((other / "file", self.folder / "file"), "not on the same mount"),
                ((other / "file", "/tmp/file"), "not on the same mount"),
                ((self.of("before") / "file", self.folder / "directory"), "is not"),
                ((self.of("before") / "directory", self.folder / "file"), "is not"),
                ((self.of("before") / "file", self.folder / "none" / "file"), "No such file"))):
            with self.subTest(number=number):
                self.assertIn(reason, self.command("restore", *arguments, "--yes", code=2).stderr)
        self.assertIn("--yes", self.command("restore", self.of("before") / "file", code=2).stderr)
        self.assertEqual(tree(self.folder), now)

    def test_a_directory_above_that_became_a_link_leads_nowhere(self):
        for name in ("docs", "docs/deep", "anothers", "anothers/deep"):
            (self.folder / name).mkdir()
        self.make("docs/deep/file", 1000)
        self.take("before")
        self.make("anothers/deep/file", 2000)
        self.make("anothers/deep/own", 10)
        shutil.rmtree(self.folder / "docs")
        (self.folder / "docs").symlink_to(self.folder / "anothers")
        now = tree(self.folder)
        for path in ("docs/deep", "docs/deep/file", "docs/deep/none"):
            with self.subTest(path=path):
                self.command("restore", self.of("before") / path, "--delete", "--yes", code=2)
        self.assertEqual(tree(self.folder), now)

    def test_a_file_that_only_looks_like_the_old_one_gets_none_of_its_rights(self):
        path, content = self.make("program", 1000)
        os.chmod(path, 0o4755)
        self.take("before")
        status = os.stat(path)
        path.unlink()
        path.write_bytes(b"x" * len(content))
        os.chown(path, USER, USER)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        with open(path, "rb") as own:
            self.restore("before")
            self.assertEqual((os.fstat(own.fileno()).st_uid, os.fstat(own.fileno()).st_mode & 0o7777), (USER, 0o644))
            self.assertEqual(own.read(), b"x" * len(content))
        self.assertTrue((self.other / self.name / "program").read_bytes() == content)
        self.assertEqual((os.stat(path).st_uid, os.stat(path).st_mode & 0o7777), (0, 0o4755))

    def test_a_directory_that_only_has_the_name_of_the_old_one_gets_none_of_its_rights(self):
        home = self.folder / "home"
        for name in ("moved", "empty", "wider"):
            (home / name).mkdir(parents=True)
            (home / name / "file").write_bytes(b"old")
            os.chown(home / name, USER, USER)
        os.chown(home / "wider", 0, 0)
        os.chown(home, USER, USER)
        self.take("before")
        for name in ("moved", "empty", "wider"):
            os.rename(home / name, home / f"{name}-away")
        private = {}
        for name in ("moved", "wider"):
            (home / name).mkdir(mode=0o700)
            (home / name / "secret").write_bytes(b"root's")
            private[name] = (home / name).stat()
        (home / "empty").mkdir(mode=0o777)
        strange = (home / "empty").stat()
        done = self.restore("before", code=1)
        self.assertEqual(sorted(one["path"] for one in done["problems"]), ["home/moved", "home/wider"])
        self.assertIn("another directory has this name", done["problems"][0]["error"])
        for name, status in private.items():
            now = (home / name).stat()
            self.assertEqual((now.st_uid, now.st_gid, now.st_mode), (status.st_uid, status.st_gid, status.st_mode))
            self.assertEqual(os.listdir(home / name), ["secret"])
        self.assertNotEqual((home / "empty").stat().st_ino, strange.st_ino)
        self.assertEqual((home / "empty").stat().st_uid, USER)
        self.assertEqual(os.listdir(home / "empty"), ["file"])

    def test_a_run_goes_on_with_what_an_interrupted_one_has_made(self):
        (self.folder / "top" / "below").mkdir(parents=True)
        (self.folder / "top" / "file").write_bytes(b"x" * 1000)
        os.chown(self.folder / "top", USER, USER)
        os.chmod(self.folder / "top", 0o750)
        self.take("before")
        shutil.rmtree(self.folder / "top")
        (self.folder / "top").mkdir(mode=0o700)  # killed right behind the mkdir
        self.assertEqual(self.restore("before")["problems"], [])
        (self.folder / "top" / "file").unlink()  # killed behind the directory
        self.assertEqual(self.restore("before")["problems"], [])
        self.assertEqual(tree(self.folder), tree(self.of("before")))

    def test_what_is_in_the_way_goes_only_with_an_option(self):
        self.make("name", 1000)
        self.take("before")
        (self.folder / "name").unlink()
        (self.folder / "name").mkdir()
        self.make("name/file", 10)
        done = self.restore("before", code=1)
        self.assertIn("--delete", done["problems"][0]["error"])
        self.assertEqual(self.restore("before", "--delete")["problems"], [])
        self.assertEqual(tree(self.folder), tree(self.of("before")))

    def test_an_export_inside_is_left_alone(self):
        (self.folder / "inner").mkdir()
        self.make("inner/file", 1000)
        self.make("file", 1000)
        self.take("before")
        self.cli("export", "create", f"/{self.name}/inner", "--no-root-squash", "--yes")
        self.addCleanup(self.cli, "export", "remove", f"/{self.name}/inner", "--yes")
        self.make("inner/new", 1000)
        self.make("file", 2000)
        done = self.restore("before", "--delete", code=1)
        self.assertEqual([one["path"] for one in done["problems"]], ["inner"])
        self.assertEqual(sorted(os.listdir(self.folder / "inner")), ["file", "new"])
        self.assertEqual((self.folder / "file").stat().st_size, 1000)

    def test_nothing_goes_of_a_directory_that_has_an_export_somewhere_in_it(self):
        self.make("file", 1000)
        self.take("before")
        for name in ("filled", "empty"):
            top = self.folder / name
            (top / "deep" / "export").mkdir(parents=True)
            for file in ("first", "deep/second", *(["deep/export/third"] if name == "filled" else [])):
                self.make(f"{name}/{file}", 1000)
            self.cli("export", "create", f"/{self.name}/{name}/deep/export", "--no-root-squash", "--yes")
            self.addCleanup(self.cli, "export", "remove", f"/{self.name}/{name}/deep/export", "--yes")
        self.make("also new", 1000)
        was = {name: tree(self.folder / name) for name in ("filled", "empty")}
        done = self.restore("before", "--delete", code=1)
        self.assertEqual({one["path"] for one in done["problems"]}, set(was))
        for one in done["problems"]:
            self.assertIn(one["path"] + ("/deep/export" if one["path"] == "filled" else "/deep") + " is an export", one["error"])
        self.assertEqual({name: tree(self.folder / name) for name in was}, was)
        self.assertFalse((self.folder / "also new").exists())

    def test_what_another_mount_has_just_changed_is_seen(self):
        path, content = self.make("file", 5000)
        self.take("before")
        mount = self.cluster.mount("actimeo=600", name="remembering")
        self.addCleanup(mount.unmount)
        was = os.stat(mount / self.name / "file")
        with open(path, "rb+", buffering=0) as file:
            file.write(b"changed")
        self.assertEqual(os.stat(mount / self.name / "file").st_mtime_ns, was.st_mtime_ns, "it remembers")
        self.command("restore", self.of("before", mount) / "file", "--yes")
        self.assertTrue(path.read_bytes() == content)

    def test_what_the_caller_cannot_list_is_named_and_not_made(self):
        os.chown(self.folder, USER, USER)
        for name in ("closed", "closed-there"):
            (self.folder / name).mkdir()
            self.make(f"{name}/file", 1000)
            os.chmod(self.folder / name, 0o711)
        self.take("before")
        shutil.rmtree(self.folder / "closed")
        done = self.restore("before", "--delete", code=1, user=USER)
        self.assertEqual({one["path"] for one in done["problems"]}, {"closed", "closed-there"})
        self.assertFalse((self.folder / "closed").exists())
        self.assertTrue((self.folder / "closed-there" / "file").exists())
        self.command("restore", self.of("before") / "closed", self.folder / "elsewhere", code=2, user=USER)
        self.assertFalse((self.folder / "elsewhere").exists())
        self.restore("before")
        self.assertEqual(tree(self.folder), tree(self.of("before")))

    def test_attributes_of_what_nobody_may_write_come_back(self):
        os.chown(self.folder, USER, USER)
        for name in ("changed", "removed"):
            path, _ = self.make(name, 1000)
            os.setxattr(path, "user.kind", b"old")
            os.setxattr(path, ACL, ACL_VALUE)
            os.chown(path, USER, USER)
            os.chmod(path, 0o440)
        was = tree(self.folder)
        self.take("before")
        os.setxattr(self.folder / "changed", "user.kind", b"new")
        (self.folder / "removed").unlink()
        self.restore("before", user=USER)
        self.assertEqual(tree(self.folder), was)

    def test_a_quota_that_is_used_up_is_named(self):
        user = USER + 1  # who has nothing of other tests
        os.chown(self.folder, user, user)
        for name in ("first", "second"):
            path, _ = self.make(name, 3 * MIB)
            os.chown(path, user, user)
        self.take("before")
        self.cli("quota", "set", "--user", user, "--space-hard", "7M")
        self.addCleanup(self.cli, "quota", "remove", "--user", user, "--yes")
        cluster.wait_until(lambda: self.cli("quota", "status")["state"] == "on", 60, "all is counted")
        for name in ("first", "second"):
            os.truncate(self.folder / name, 3 * MIB - 1)
        with open(self.folder / "third", "wb") as file:
            os.fchown(file.fileno(), user, user)
            file.write(bytes(MIB))
        done = self.restore("before", code=1, user=user)
        self.assertEqual({one["path"] for one in done["problems"]}, {"first", "second"})
        self.assertEqual(done["over_quota"], {"path": "first", "user": user, "group": user})
        said = self.command("restore", self.of("before"), "--yes", code=1, user=user).stderr
        self.assertIn(f"a quota is used up: of user {user}", said)
        self.restore("before", "--delete", code=1, user=user)
        self.cli("quota", "set", "--user", user, "--space-hard", "10M")
        self.assertIsNone(self.restore("before", user=user)["over_quota"])
        self.assertEqual(tree(self.folder), tree(self.of("before")))

    def test_links_cannot_come_back_across_the_edge_of_a_quota_tree(self):
        (self.folder / "tree").mkdir()
        self.make("file", 1000)
        os.link(self.folder / "file", self.folder / "tree" / "link")
        self.take("before")
        (self.folder / "tree" / "link").unlink()
        self.cli("quota", "set", "--tree", f"/{self.name}/tree", "--space-hard", "1G")
        self.addCleanup(self.cli, "quota", "remove", "--tree", f"/{self.name}/tree", "--yes")
        done = self.restore("before", code=1)
        self.assertEqual([one["path"] for one in done["problems"]], ["tree/link"])
        self.assertIn("quota", done["problems"][0]["error"])


if __name__ == "__main__":
    cluster.require_mounts()
    unittest.main()
