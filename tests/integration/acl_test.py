#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""POSIX ACLs on real mounts: setfacl(1) and getfacl(1), what they grant to whom, what is inherited, what cp -a, rsync -A and
tar --acls keep of them. A file system of this host says what is right, where it knows ACLs.

usage: acl_test.py BIN_DIRECTORY
"""
import contextlib
import errno
import os
import pathlib
import random
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import cluster
import ganesha
from two_mounts import TwoMounts

BIN = TwoMounts.bin = sys.argv.pop(1)
MIB = 1 << 20
OWNER, NAMED, GROUPED, STRANGER = 21000, 22000, 23000, 24000
GROUP = 25000
NOBODY = 0xFFFFFFFF  # in an entry that names nobody
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


def setUpModule():
    for tool in ("setfacl", "getfacl", "rsync"):
        if shutil.which(tool) is None:
            print(f"skipped: {tool} is missing")
            raise SystemExit(77)


def run(*command, cwd=None, text=None, check=True):
    done = subprocess.run([str(word) for word in command], cwd=cwd, input=text, capture_output=True, text=True, timeout=120)
    if check and done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def setfacl(*arguments):
    run("setfacl", *arguments)


def getfacl(path, *options):
    """The entries, by number: "user::rw- user:22000:r-- …"."""
    return " ".join(run("getfacl", "-cnpE", *options, path).stdout.split())


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def attempt(work):
    """0, or the errno it fails with."""
    try:
        work()
        return 0
    except OSError as e:
        return e.errno


def as_user(user, work, groups=(), umask=0o022):
    """What attempt() says in a process of that user."""
    child = os.fork()
    if child == 0:
        os.setgroups(list(groups))
        os.setgid(user)
        os.setuid(user)
        os.umask(umask)
        try:
            os._exit(attempt(work))
        except BaseException:
            os._exit(255)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def opening(path, flags):
    def work():
        fd = os.open(path, flags)
        os.close(fd)
    return work


def make(path, mode=0o666):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))


class Acls(TwoMounts):
    options = ""

    def setUp(self):
        self.directory = self.mount / self.id().rsplit(".", 1)[-1]
        self.directory.mkdir()
        self.directory.chmod(0o777)
        self.other_directory = self.other / self.directory.name

    def operations(self):
        return dict(self.mount.statistics()["mds_operations"])

    def test_one_is_set_shown_changed_and_removed(self):
        path = self.directory / "file"
        make(path)
        os.chmod(path, 0o640)
        self.assertEqual(getfacl(path), "user::rw- group::r-- other::---")
        setfacl("-m", f"u:{NAMED}:rw,g:{GROUP}:r", path)
        self.assertEqual(getfacl(path),
                         f"user::rw- user:{NAMED}:rw- group::r-- group:{GROUP}:r-- mask::rw- other::---")
        self.assertEqual(mode_of(path), 0o660)
        self.assertEqual(os.listxattr(path), [ACCESS])
        os.chmod(path, 0o604)
        self.assertIn("mask::---", getfacl(path))
        self.assertIn("other::r--", getfacl(path))
        setfacl("-x", f"u:{NAMED}", path)
        self.assertNotIn(str(NAMED), getfacl(path))
        setfacl("-b", path)
        self.assertEqual(getfacl(path), "user::rw- group::r-- other::r--")
        self.assertEqual(os.listxattr(path), [])

    def test_removexattr_leaves_the_mode(self):
        path = self.directory / "file"
        make(path)
        setfacl("-m", f"u:{NAMED}:rwx", path)
        self.assertEqual(mode_of(path), 0o674)
        os.removexattr(path, ACCESS)
        self.assertEqual(mode_of(path), 0o674)
        self.assertEqual(getfacl(path), "user::rw- group::rwx other::r--")
        with contextlib.suppress(OSError):
            os.removexattr(path, ACCESS)
        self.assertEqual(mode_of(path), 0o674)

    def test_what_cannot_be_is_refused(self):
        path = self.directory / "file"
        make(path)
        before = getfacl(path)
        without_mask = struct.pack("<I" + 4 * "HHI", 2, 1, 6, NOBODY, 2, 6, NAMED, 4, 6, NOBODY, 32, 4, NOBODY)
        without_others = without_mask[:4 + 8] + without_mask[4 + 16:4 + 24]
        for value in (b"\1\0\0\0" + bytes(8), b"\2\0\0\0" + bytes(7), without_mask, without_others):
            self.assertEqual(attempt(lambda: os.setxattr(path, ACCESS, value)) in (errno.EINVAL, errno.EOPNOTSUPP), True, value)
        setfacl("-m", f"u:{NAMED}:r", self.directory)
        acl = os.getxattr(self.directory, ACCESS)
        self.assertEqual(attempt(lambda: os.setxattr(path, DEFAULT, acl)), errno.EACCES)
        self.assertEqual(getfacl(path), before)
        self.assertEqual(as_user(STRANGER, lambda: os.setxattr(path, ACCESS, acl)), errno.EPERM)
        # As many entries as the kernel carries in one page.
        setfacl("-m", ",".join(f"u:{30000 + i}:r" for i in range(511 - 4)), path)
        self.assertEqual(len(os.getxattr(path, ACCESS)), 4 + 8 * 511)
        self.assertNotEqual(run("setfacl", "-m", "u:31999:r", path, check=False).returncode, 0)

    def test_it_decides_who_may_do_what(self):
        path = self.directory / "file"
        content = os.urandom(4 * MIB)  # by RDMA
        path.write_bytes(content)
        os.chown(path, OWNER, OWNER)
        os.chmod(path, 0o600)
        setfacl("-m", f"u:{NAMED}:r,g:{GROUP}:rw", path)
        for mount in (self.mount, self.other):
            there = mount / self.directory.name / "file"
            def read_all():
                if there.read_bytes() != content:
                    raise OSError(errno.EIO, "other bytes")
            def write():
                with open(there, "r+b", buffering=0) as f:
                    f.write(content[:MIB])
                    os.fsync(f.fileno())
            self.assertEqual(as_user(NAMED, read_all), 0)
            self.assertEqual(as_user(NAMED, write), errno.EACCES)
            self.assertEqual(as_user(GROUPED, read_all, [GROUP]), 0)
            self.assertEqual(as_user(GROUPED, write, [GROUP]), 0)
            self.assertEqual(as_user(GROUPED, read_all), errno.EACCES)
            self.assertEqual(as_user(STRANGER, read_all, [OWNER]), errno.EACCES, "the owning group's entry, not the mask")
            self.assertEqual(as_user(OWNER, write), 0)
            self.assertTrue(as_user(NAMED, lambda: os.access(there, os.R_OK) or os.abort()) == 0)
        os.chmod(path, 0o640)
        self.assertEqual(as_user(GROUPED, opening(path, os.O_RDWR), [GROUP]), errno.EACCES, "chmod has changed the mask")
        self.assertEqual(as_user(GROUPED, opening(path, os.O_RDONLY), [GROUP]), 0)

    def test_the_server_decides_as_well(self):
        """On a mount whose kernel does not."""
        path = self.directory / "file"
        path.write_bytes(b"secret")
        os.chmod(path, 0o600)
        setfacl("-m", f"u:{NAMED}:r", path)
        setfacl("-m", f"u:{NAMED}:x,g::-,o::-", self.directory)
        mount = self.cluster.mount("nodefault_permissions", name="server-decides")
        there = mount / self.directory.name / "file"
        self.assertEqual(as_user(STRANGER, there.stat), errno.EACCES)
        self.assertEqual(as_user(NAMED, there.read_bytes), 0)
        self.assertEqual(as_user(NAMED, opening(there, os.O_WRONLY)), errno.EACCES)
        self.assertEqual(as_user(NAMED, lambda: os.listdir(there.parent)), errno.EACCES)
        self.assertEqual(getfacl(there), getfacl(path))
        setfacl("-d", "-m", "u::rwx,g::rx,o::-", mount / self.directory.name)
        before = os.umask(0o027)
        try:
            make(mount / "masked")
            make(there.parent / "inherits")
        finally:
            os.umask(before)
        self.assertEqual(mode_of(mount / "masked"), 0o640)
        self.assertEqual(mode_of(there.parent / "inherits"), 0o640)
        os.umask(0o077)
        make(there.parent / "of-the-group")
        os.umask(before)
        self.assertEqual(mode_of(there.parent / "of-the-group"), 0o640)
        os.unlink(mount / "masked")
        mount.unmount()

    def test_a_default_acl_is_inherited_and_takes_the_umasks_place(self):
        setfacl("-d", "-m", f"u::rwx,u:{NAMED}:rwx,g::rx,o::-", self.directory)
        self.assertEqual(getfacl(self.directory, "-d"), f"user::rwx user:{NAMED}:rwx group::r-x mask::rwx other::---")
        self.assertIn(DEFAULT, os.listxattr(self.directory))
        file, sub, fifo, link = (self.directory / name for name in ("file", "sub", "fifo", "link"))
        before = os.umask(0o077)
        try:
            make(file)
            sub.mkdir()
            os.mkfifo(fifo, 0o666)
            link.symlink_to("file")
            make(sub / "deep", 0o640)
        finally:
            os.umask(before)
        self.assertEqual(getfacl(file), f"user::rw- user:{NAMED}:rwx group::r-x mask::rw- other::---")
        self.assertEqual(mode_of(file), 0o660)
        self.assertEqual(getfacl(sub), getfacl(self.directory, "-d") + " " + " ".join(
            f"default:{entry}" for entry in getfacl(self.directory, "-d").split()))
        self.assertEqual(mode_of(fifo), 0o660)
        self.assertEqual(getfacl(sub / "deep"), f"user::rw- user:{NAMED}:rwx group::r-x mask::r-- other::---")
        self.assertEqual(as_user(NAMED, opening(file, os.O_RDWR)), 0)
        self.assertEqual(as_user(STRANGER, opening(file, os.O_RDONLY)), errno.EACCES)
        self.assertEqual(as_user(NAMED, lambda: make(sub / "his")), 0)
        setfacl("-k", self.directory)
        before = os.umask(0o027)
        make(self.directory / "plain")
        (self.directory / "plain-directory").mkdir()
        os.umask(before)
        self.assertEqual(mode_of(self.directory / "plain"), 0o640)
        self.assertEqual(mode_of(self.directory / "plain-directory"), 0o750)

    def test_the_umask_is_each_programs_own(self):
        for umask in (0, 0o022, 0o077, 0o777):
            name = f"file{umask:o}"
            self.assertEqual(as_user(OWNER, lambda: make(self.directory / name), umask=umask), 0)
            self.assertEqual(mode_of(self.directory / name), 0o666 & ~umask)
            self.assertEqual(as_user(OWNER, lambda: os.mkdir(self.directory / (name + "d"), 0o7777), umask=umask), 0)
            self.assertEqual(mode_of(self.directory / (name + "d")) & 0o777, 0o777 & ~umask)

    def test_setgid_goes_with_an_acl_of_a_stranger_to_the_group(self):
        path = self.directory / "file"
        make(path)
        os.chown(path, OWNER, GROUP)
        os.chmod(path, 0o2755)
        self.assertEqual(as_user(OWNER, lambda: setfacl("-m", f"u:{NAMED}:r", path), [GROUP]), 0)
        self.assertEqual(mode_of(path), 0o2755)
        self.assertEqual(as_user(OWNER, lambda: setfacl("-m", f"u:{NAMED}:rx", path)), 0)
        self.assertEqual(mode_of(path), 0o755)

    def test_another_mount_sees_it_as_it_sees_a_chmod(self):
        path, there = self.directory / "file", self.other_directory / "file"
        make(path)
        os.chmod(path, 0o600)
        self.assertEqual(as_user(NAMED, opening(there, os.O_RDONLY)), errno.EACCES)
        setfacl("-m", f"u:{NAMED}:r", path)
        self.assertEqual(as_user(NAMED, opening(there, os.O_RDONLY)), 0)
        self.assertEqual(getfacl(there), getfacl(path))
        setfacl("-b", there)
        # `mount` believes attributes for three seconds.
        cluster.wait_until(lambda: as_user(NAMED, opening(path, os.O_RDONLY)) == errno.EACCES, 10, "the change is seen")
        cluster.wait_until(lambda: str(NAMED) not in getfacl(path), 10, "the change is shown")

    def test_under_a_read_delegation(self):
        path = self.directory / "file"
        path.write_bytes(b"x" * 100_000)
        os.chmod(path, 0o600)
        setfacl("-m", f"u:{NAMED}:r", path)
        for _ in range(4):
            self.assertEqual(as_user(NAMED, path.read_bytes), 0)
        setfacl("-x", f"u:{NAMED}", path)
        self.assertEqual(as_user(NAMED, path.read_bytes), errno.EACCES)
        setfacl("-m", f"u:{NAMED}:r", path)
        for _ in range(4):
            self.assertEqual(as_user(NAMED, path.read_bytes), 0)
        setfacl("-b", self.other_directory / "file")  # recalls it
        cluster.wait_until(lambda: as_user(NAMED, path.read_bytes) == errno.EACCES, 10, "the change is seen")

    def test_files_without_cost_no_call(self):
        for i in range(100):
            make(self.directory / f"file{i}")
        run("ls", "-l", self.directory)
        before = self.operations()
        for i in range(100):
            self.assertEqual(attempt(lambda: os.getxattr(self.directory / f"file{i}", ACCESS)), errno.ENODATA)
        self.assertEqual(attempt(lambda: os.getxattr(self.directory, DEFAULT)), errno.ENODATA)
        after = self.operations()
        self.assertLessEqual(after.get("GETATTR", 0) - before.get("GETATTR", 0), 3)
        self.assertEqual(after.get("GETXATTR", 0), before.get("GETXATTR", 0))

    def test_getfacl_is_restored(self):
        tree = self.directory / "tree"
        self.make_tree(tree)
        saved = run("getfacl", "-R", "-n", "tree", cwd=self.directory).stdout
        setfacl("-R", "-b", tree)
        setfacl("-R", "-k", tree)
        self.assertNotEqual(run("getfacl", "-R", "-n", "tree", cwd=self.directory).stdout, saved)
        run("setfacl", "--restore=-", cwd=self.directory, text=saved)
        self.assertEqual(run("getfacl", "-R", "-n", "tree", cwd=self.directory).stdout, saved)

    def make_tree(self, tree):
        tree.mkdir()
        (tree / "sub").mkdir()
        for path in (tree / "plain", tree / "named", tree / "sub" / "deep"):
            path.write_text(path.name)
        os.chmod(tree / "plain", 0o640)
        setfacl("-m", f"u:{NAMED}:rw,g:{GROUP}:r", tree / "named")
        setfacl("-m", f"u:{NAMED}:rx", "-m", f"d:u:{NAMED}:rwx,d:g:{GROUP}:rx", tree / "sub")
        setfacl("-m", f"u:{STRANGER}:-", tree / "sub" / "deep")
        setfacl("-m", "d:u::rwx,d:g::rx,d:o::-", tree)

    @staticmethod
    def listing(tree):
        """One text for each file."""
        return sorted(run("getfacl", "-R", "-n", tree.name, cwd=tree.parent).stdout.split("\n\n"))

    def test_copies_keep_them(self):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as home:
            local = pathlib.Path(home) / "tree"
            try:
                self.make_tree(local)
            except AssertionError:
                self.skipTest("the file system of /var/tmp has no ACLs")
            wanted = self.listing(local)
            copies = {"cp": ("cp", "-a"), "rsync": ("rsync", "-aA")}
            for name, command in copies.items():
                to, back = self.directory / name, pathlib.Path(home) / f"{name}-back"
                to.mkdir()
                back.mkdir()
                done = run(*command, local, f"{to}/")
                self.assertEqual(done.stderr, "")
                self.assertEqual(self.listing(to / "tree"), wanted, name)
                self.assertEqual(run(*command, to / "tree", f"{back}/").stderr, "")
                self.assertEqual(self.listing(back / "tree"), wanted, name)
            archive = pathlib.Path(home) / "tree.tar"
            run("tar", "--acls", "-C", home, "-cf", archive, "tree")
            (self.directory / "tar").mkdir()
            run("tar", "--acls", "-C", self.directory / "tar", "-xpf", archive)
            self.assertEqual(self.listing(self.directory / "tar" / "tree"), wanted)
            run("tar", "--acls", "-C", self.directory / "tar", "-cf", archive, "tree")
            (pathlib.Path(home) / "tar-back").mkdir()
            run("tar", "--acls", "-C", pathlib.Path(home) / "tar-back", "-xpf", archive)
            self.assertEqual(self.listing(pathlib.Path(home) / "tar-back" / "tree"), wanted)

    def test_as_a_file_system_of_this_host_has_it(self):
        """The same random changes there and here: the same ACLs, modes and rights."""
        chance = random.Random(20)
        with tempfile.TemporaryDirectory(dir="/var/tmp") as home:
            os.chmod(home, 0o755)
            local = pathlib.Path(home) / "both"
            if run("setfacl", "-m", f"u:{NAMED}:r", home, check=False).returncode != 0:
                self.skipTest("the file system of /var/tmp has no ACLs")
            setfacl("-b", home)
            pair = (local, self.directory / "both")
            for path in pair:
                path.mkdir()
                os.chown(path, OWNER, GROUP)
            for step in range(60):
                self.change_both(chance, pair, step)
            for step in range(40):
                self.compare_both(chance, pair)

    def change_both(self, chance, pair, step):
        def bits():
            return chance.choice(("-", "r", "w", "x", "rw", "rx", "wx", "rwx"))
        names = [path.relative_to(pair[0]) for path in pair[0].rglob("*")]
        name = chance.choice(names) if names else None
        kind = chance.randrange(7) if names else 0
        parent = chance.choice([n for n in names if (pair[0] / n).is_dir()] or ["."])
        umask, mode = chance.choice((0, 0o022, 0o077)), chance.choice((0o777, 0o666, 0o640, 0o2775))
        named = chance.choice((f"u:{NAMED}", f"g:{GROUP}", f"u:{STRANGER}", "u:", "g:", "o:"))
        default = chance.randrange(2)
        wish = f"{named}:{bits()}"
        for tree in pair:
            before = os.umask(umask)
            try:
                if kind == 0:
                    (tree / parent / f"d{step}").mkdir(mode)
                    os.chown(tree / parent / f"d{step}", OWNER, GROUP)
                elif kind == 1:
                    make(tree / parent / f"f{step}", mode & 0o777)
                    os.chown(tree / parent / f"f{step}", OWNER, GROUP)
                elif kind == 2:
                    os.chmod(tree / name, mode)
                elif kind == 3:
                    setfacl("-b", tree / name)
                elif default and (tree / name).is_dir():
                    setfacl("-d", "-m", wish, tree / name)
                else:
                    setfacl("-m", wish, tree / name)
            finally:
                os.umask(before)

    def compare_both(self, chance, pair):
        names = [path.relative_to(pair[0]) for path in pair[0].rglob("*")]
        name = chance.choice(names)
        self.assertEqual(getfacl(pair[1] / name), getfacl(pair[0] / name), name)
        self.assertEqual(mode_of(pair[1] / name), mode_of(pair[0] / name), name)
        user = chance.choice((OWNER, NAMED, GROUPED, STRANGER))
        groups = chance.choice(([], [GROUP], [OWNER]))
        flags = chance.choice((os.O_RDONLY, os.O_WRONLY, os.O_RDWR))
        local, here = (as_user(user, opening(tree / name, flags), groups) for tree in pair)
        self.assertEqual(here, local, f"{user} {groups} {flags} {name}: {getfacl(pair[0] / name)}")

    def test_they_outlive_the_server(self):
        path = self.directory / "file"
        make(path)
        setfacl("-m", f"u:{NAMED}:rw", path)
        setfacl("-d", "-m", f"u:{NAMED}:rw", self.directory)
        before = getfacl(path), getfacl(self.directory)
        self.cluster.kill("mds")
        self.cluster.start_mds()
        time.sleep(0.1)
        self.assertEqual((getfacl(self.other_directory / "file"), getfacl(self.other_directory)), before)
        self.cluster.stop("mds")
        check = self.cluster.run("mdsd", "--config", str(self.cluster.home / "mds.json"), "--check", check=False)
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        self.cluster.start_mds()


class OfAServerWithoutThem(unittest.TestCase):
    @unittest.skipIf(ganesha.PROGRAM is None, "NFS-Ganesha is missing (packaging/dependencies.sh peers)")
    def test_programs_say_so_once_and_go_on(self):
        server = ganesha.Ganesha(BIN).start()
        mount = cluster.Mount(server, "mount", "flush_after=0", server.nfs_port)
        try:
            path = mount / "file"
            path.write_text("x")
            self.assertEqual(attempt(lambda: os.getxattr(path, ACCESS)), errno.ENOTSUP)
            before = os.umask(0o027)
            make(mount / "new")
            os.umask(before)
            self.assertEqual(mode_of(mount / "new"), 0o640)
            self.assertEqual(run("cp", "-a", path, mount / "copy").stderr, "")
        finally:
            mount.close()
            server.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
