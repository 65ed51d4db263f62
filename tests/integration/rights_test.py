#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a user may do on a real mount: the set-id bits, write-only files, reclaims, his groups.

usage: rights_test.py BIN_DIRECTORY
"""
import errno
import itertools
import json
import os
import signal
import stat
import subprocess
import sys
import time
import traceback
import unittest

from cluster import Cluster, OpenFile, wait_until
from delay_proxy import DelayProxy

BIN = sys.argv.pop(1)
MIB = 1 << 20
USER = 12345
GROUP = 54321


def begin_as(user, action, groups=()):
    """Runs `action` in a process of a user without privilege."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(list(groups))
            os.setgid(user)
            os.setuid(user)
            action()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return child


def ended_well(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


class Rights(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(BIN, pool_size="512M").start_all()
        self.mount = self.cluster.mount()

    def tearDown(self):
        self.cluster.close()

    def as_user(self, action, user=USER, groups=()):
        self.assertTrue(ended_well(begin_as(user, action, groups)))

    def test_a_program_is_installed_set_id_by_its_owner(self):
        home = self.mount / "home"
        os.mkdir(home)
        os.chown(home, USER, USER)

        def install():
            fd = os.open(home / "program", os.O_RDWR | os.O_CREAT, 0o700)
            os.write(fd, b"x" * (3 * MIB))
            os.fsync(fd)
            os.pwrite(fd, b"y" * MIB, 0)
            os.fchmod(fd, 0o6755)
            os.close(fd)

        began = time.monotonic()
        self.as_user(install)
        # Nobody waits for a recall that nobody answers.
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(mode_of(home / "program"), 0o6755)
        time.sleep(1)
        other = self.cluster.mount(name="other")
        self.assertEqual(mode_of(other / "home/program"), 0o6755)

    def test_an_overwrite_takes_the_set_id_bits(self):
        path = self.mount / "program"
        f = OpenFile(path)
        f.write(b"x" * (4 * MIB))
        f.fsync()
        os.chmod(path, 0o6777)
        f.close()
        other = self.cluster.mount(name="other")

        def overwrite():
            fd = os.open(other / "program", os.O_RDWR)
            for block in range(4):
                os.pwrite(fd, b"y" * MIB, block * MIB)
            os.fsync(fd)
            os.close(fd)

        self.as_user(overwrite)
        self.assertEqual(mode_of(other / "program"), 0o777)
        with open(path, "rb") as readable:
            self.assertEqual(readable.read(), b"y" * (4 * MIB))

    def test_a_file_that_may_only_be_written_is_written(self):
        path = self.mount / "drop"
        with open(path, "wb") as f:
            f.write(b"secret" * 1000)
        os.chmod(path, 0o222)

        def append():
            fd = os.open(path, os.O_WRONLY)
            os.lseek(fd, 0, os.SEEK_END)
            for _ in range(3):
                os.write(fd, b"new" * 100_000)
                os.fsync(fd)
            os.close(fd)
            try:
                os.open(path, os.O_RDONLY)
            except PermissionError:
                return
            raise AssertionError("it could be read")

        self.as_user(append)
        with open(path, "rb") as f:
            self.assertEqual(f.read(), b"secret" * 1000 + b"new" * 300_000)

    def test_a_new_file_in_the_setgid_directory_of_a_foreign_group(self):
        shared = self.mount / "shared"
        os.mkdir(shared)
        os.chown(shared, 0, GROUP)
        os.chmod(shared, 0o2777)

        def make(name):
            os.umask(0)
            os.close(os.open(shared / name, os.O_WRONLY | os.O_CREAT, 0o2755))

        self.as_user(lambda: make("stranger"))
        self.as_user(lambda: make("member"), groups=[GROUP])
        self.assertEqual(os.stat(shared / "stranger").st_gid, GROUP)
        self.assertEqual(mode_of(shared / "stranger"), 0o755)
        self.assertEqual(mode_of(shared / "member"), 0o2755)

    def test_what_two_users_have_open_is_reclaimed(self):
        path = self.mount / "both"
        with open(path, "wb") as f:
            f.write(b"r" * MIB)
        os.chown(path, USER, USER)
        os.chmod(path, 0o602)
        go, opened = os.pipe(), os.pipe()

        def use(flags, action):
            fd = os.open(path, flags)
            os.write(opened[1], b".")
            os.read(go[0], 1)
            action(fd)
            os.close(fd)

        def read(fd):
            assert len(os.pread(fd, 3, 0)) == 3

        def write(fd):
            os.pwrite(fd, b"w" * MIB, 0)
            os.fsync(fd)

        reader = begin_as(USER, lambda: use(os.O_RDONLY, read))
        writer = begin_as(USER + 1, lambda: use(os.O_WRONLY, write))
        for _ in range(2):
            os.read(opened[0], 1)
        self.cluster.kill("mds")
        self.cluster.start_mds()
        os.write(go[1], b"..")
        self.assertTrue(ended_well(writer))
        self.assertTrue(ended_well(reader))
        with open(path, "rb") as f:
            self.assertEqual(f.read(), b"w" * MIB)


class Exports(unittest.TestCase):
    """What a host sees of a server whose root is exported to others."""

    def setUp(self):
        self.cluster = Cluster(BIN, pool_size="512M").start_all()
        whole = self.cluster.mount(name="whole")
        for path in ("pub/below", "secret/deep"):
            os.makedirs(whole / path)
        with open(whole / "pub/file", "wb") as f:
            f.write(b"x" * MIB)
        whole.unmount()
        self.cluster.stop("mds")

    def tearDown(self):
        self.cluster.close()

    def serve(self, *exports):
        config = self.cluster.home / "mds.json"
        values = json.loads(config.read_text())
        values["exports"] = [{"root_squash": False, **rules} for rules in exports]
        self.cluster.write_config("mds", values)
        self.cluster.start_mds()

    def test_the_root_shows_the_way_to_what_admits_this_host(self):
        self.serve({"path": "/", "clients": ["10.0.0.0/8"]}, {"path": "/pub", "clients": ["127.0.0.0/8"]})
        mount = self.cluster.mount()
        self.assertEqual(os.listdir(mount / ""), ["pub"])
        self.assertEqual(stat.S_IMODE(os.stat(mount / "").st_mode), 0o555)
        self.assertEqual(sorted(os.listdir(mount / "pub")), ["below", "file"])
        with self.assertRaises(FileNotFoundError):
            os.stat(mount / "secret")
        with self.assertRaises(OSError) as refused:
            os.mkdir(mount / "new")
        self.assertEqual(refused.exception.errno, errno.EROFS)
        with open(mount / "pub/file", "r+b") as f:
            self.assertEqual(f.read(), b"x" * MIB)
            f.write(b"y" * MIB)
            os.fsync(f.fileno())
        mount.unmount()

    def test_what_leads_to_an_export_is_busy(self):
        self.serve({"path": "/"}, {"path": "/pub/below"})
        mount = self.cluster.mount()
        for change in (lambda: os.rename(mount / "pub", mount / "moved"), lambda: os.rmdir(mount / "pub/below")):
            with self.assertRaises(OSError) as refused:
                change()
            self.assertEqual(refused.exception.errno, errno.EBUSY)
        os.rename(mount / "secret", mount / "moved")
        mount.unmount()


class Squashed(unittest.TestCase):
    """The default export: root of a host is nobody."""

    def setUp(self):
        self.cluster = Cluster(BIN, pool_size="512M").start_all()
        whole = self.cluster.mount(name="whole")
        os.mkdir(whole / "home")
        os.chown(whole / "home", USER, USER)
        whole.unmount()
        self.cluster.stop("mds")
        config = self.cluster.home / "mds.json"
        values = json.loads(config.read_text())
        values["exports"][0]["root_squash"] = True
        self.cluster.write_config("mds", values)
        self.cluster.start_mds()

    def tearDown(self):
        self.cluster.close()

    def as_user(self, action, user=USER):
        self.assertTrue(ended_well(begin_as(user, action)))

    def overwrite(self, mount, other):
        """Each way to change a file, by its owner and by a stranger: it is done, and the bits go."""
        path = mount / "home/program"

        def install():
            with open(path, "wb", buffering=0) as f:
                f.write(b"x" * MIB)
                os.fsync(f.fileno())
                os.fchmod(f.fileno(), 0o6777)

        def copy(fd):
            with open(mount / "home/source", "rb") as source:
                os.copy_file_range(source.fileno(), fd, 1000, 0, 0)

        def append(fd):
            with open(path, "ab", buffering=0) as end:
                end.write(b"y" * 1000)

        self.as_user(lambda: (mount / "home/source").write_bytes(b"y" * MIB))
        ways = {"write": lambda fd: os.pwrite(fd, b"y" * MIB, 0), "append": append, "copy": copy,
                "allocate": lambda fd: os.posix_fallocate(fd, 0, 2 * MIB), "cut": lambda fd: os.ftruncate(fd, 1000)}
        for user, (name, way) in itertools.product((USER, USER + 1), ways.items()):
            with self.subTest(name, user=user):
                self.as_user(install)
                self.assertEqual(mode_of(other / "home/program"), 0o6777)

                def act():
                    fd = os.open(path, os.O_RDWR)
                    way(fd)
                    os.fsync(fd)
                    assert stat.S_IMODE(os.fstat(fd).st_mode) == 0o777, oct(os.fstat(fd).st_mode)
                    os.close(fd)
                self.as_user(act, user)
                self.assertEqual(mode_of(other / "home/program"), 0o777)
                self.as_user(lambda: os.unlink(path))

    def test_whoever_writes_takes_the_set_id_bits(self):
        self.overwrite(self.cluster.mount(), self.cluster.mount("actimeo=0", name="other"))

    def test_so_it_is_when_the_kernel_writes_back(self):
        self.overwrite(self.cluster.mount("writeback"), self.cluster.mount("actimeo=0", name="other"))


class Ports(unittest.TestCase):
    """Calls from a port that anybody may bind, as a proxy makes them, are served where the export is insecure."""

    def setUp(self):
        self.cluster = Cluster(BIN, pool_size="512M").start_all()
        self.proxy = DelayProxy(self.cluster.nfs_port, 0)

    def tearDown(self):
        self.cluster.close()
        self.proxy.close()

    def cli(self, *words):
        told = subprocess.run([str(self.cluster.bin / "pnfsrdma"), "--socket", f"{self.cluster.home}/console.sock",
                               "--json", *words], capture_output=True, text=True, timeout=60)
        return json.loads(told.stdout)

    def ports_check(self, status):
        """The check of that name, when it has this status: numbers are a second old at most."""
        checks = []

        def seen():
            checks[:] = [check for check in self.cli("health")["checks"] if check["name"] == "ports"]
            return checks[0]["status"] == status
        wait_until(seen, 20, f"the check says {status}")
        return checks[0]["detail"]

    def test_a_mount_from_a_high_port_is_refused_until_the_export_is_insecure(self):
        self.ports_check("ok")
        point = self.cluster.home / "refused"
        point.mkdir()
        refused = self.cluster.run("fuse", f"127.0.0.1:{self.proxy.port}:/", str(point), "-f", check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('"insecure"', refused.stderr)
        self.assertIn("requests, last from 127.0.0.1)", self.ports_check("warning"))
        self.assertIn("port-refused", self.cluster.log("mds"))

        (root,) = self.cli("export", "list")
        self.assertEqual(root["insecure"], False)
        self.assertEqual(self.cli("export", "edit", "/", "--insecure")["insecure"], True)
        mount = self.cluster.mount(name="served", port=self.proxy.port, proto="tcp")
        (mount / "file").write_text("text")
        self.ports_check("ok")

        # Back to secure: whoever is mounted already is refused, too, and so it is after a restart.
        self.cli("export", "edit", "/", "--secure")
        with self.assertRaises(OSError) as again:
            os.mkdir(mount / "new")
        self.assertEqual(again.exception.errno, errno.EPERM)
        self.cluster.stop("mds")
        self.cluster.start_mds()
        with self.assertRaises(OSError) as again:
            os.mkdir(mount / "new")
        self.assertEqual(again.exception.errno, errno.EPERM)
        from_reserved = self.cluster.mount(name="reserved", proto="tcp")
        self.assertEqual((from_reserved / "file").read_text(), "text")


class HostWithUsers(Cluster):
    """Its MDS sees files of its own as /etc/passwd and /etc/group."""

    def program(self, name):
        if name != "mdsd":
            return super().program(name)
        wrapper = self.home / "mdsd.sh"
        wrapper.write_text(f"""#!/bin/sh
exec unshare --mount --propagation private sh -c '
    mount --bind {self.home}/passwd /etc/passwd && mount --bind {self.home}/group /etc/group &&
    exec {super().program(name)} "$@"' mdsd "$@"
""")
        wrapper.chmod(0o755)
        return str(wrapper)

    def write_users(self, groups):
        """USER is in these groups. Written in place: what is mounted is the inode."""
        (self.home / "passwd").write_text(f"root:x:0:0::/root:/bin/sh\nmany:x:{USER}:{USER}::/:/bin/sh\n")
        (self.home / "group").write_text(f"many:x:{USER}:\n" +
                                         "".join(f"team{group}:x:{group}:many\n" for group in groups))


class ManyGroups(unittest.TestCase):
    GROUPS = range(50001, 50041)  # forty; a call has room for sixteen

    def setUp(self):
        self.cluster = HostWithUsers(BIN, pool_size="512M")
        self.cluster.write_users(self.GROUPS)
        self.cluster.start_all()
        self.mount = self.cluster.mount()
        self.team = self.mount / "team"
        self.team.mkdir()
        os.chown(self.team, 0, self.GROUPS[-1])
        os.chmod(self.team, 0o770)

    def tearDown(self):
        self.cluster.close()

    def cli(self, *words):
        told = subprocess.run([str(self.cluster.bin / "pnfsrdma"), "--socket", f"{self.cluster.home}/console.sock",
                               "--json", *words], capture_output=True, text=True, timeout=60)
        return json.loads(told.stdout)

    def attempt(self, action):
        """None, or the error with which it ends for the user."""
        answer, told = os.pipe()

        def act():
            try:
                action()
            except OSError as error:
                os.write(told, errno.errorcode[error.errno].encode())
        child = begin_as(USER, act, self.GROUPS)
        os.close(told)
        with os.fdopen(answer) as text:
            error = text.read()
        self.assertTrue(ended_well(child))
        return error or None

    def test_manage_gids_gives_a_user_all_his_groups(self):
        self.assertEqual(self.attempt((self.team / "a").mkdir), "EACCES")
        self.assertEqual(self.cli("export", "edit", "/", "--manage-gids")["manage_gids"], True)
        self.assertIsNone(self.attempt((self.team / "a").mkdir))
        large = self.team / "large"
        self.assertIsNone(self.attempt(lambda: large.write_bytes(b"x" * 3 * MIB)))
        self.assertIsNone(self.attempt(lambda: self.assertEqual(len(large.read_bytes()), 3 * MIB)))
        roots = self.team / "roots"
        roots.write_bytes(b"y" * MIB)
        os.chown(roots, 0, self.GROUPS[-2])
        os.chmod(roots, 0o660)
        self.assertIsNone(self.attempt(lambda: roots.write_bytes(b"z" * MIB)))
        (groups,) = [check for check in self.cli("health")["checks"] if check["name"] == "groups"]
        self.assertEqual(groups["status"], "ok")

        # Who has left the team still counts, until the server is told or half an hour is over.
        self.cluster.write_users(self.GROUPS[:-1])
        self.assertIsNone(self.attempt((self.team / "b").mkdir))
        self.cluster.signal("mds", signal.SIGHUP)
        names = (f"c{number}" for number in itertools.count())
        wait_until(lambda: self.attempt((self.team / next(names)).mkdir) == "EACCES", 20, "the groups are asked anew")

        # The rule is kept.
        self.cluster.write_users(self.GROUPS)
        self.cluster.stop("mds")
        self.cluster.start_mds()
        self.assertIsNone(self.attempt((self.team / "d").mkdir))
        self.cli("export", "edit", "/", "--no-manage-gids")
        self.assertEqual(self.attempt((self.team / "e").mkdir), "EACCES")


if __name__ == "__main__":
    unittest.main(verbosity=2)
