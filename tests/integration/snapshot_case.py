# SPDX-License-Identifier: Apache-2.0
"""A test case of snapshots: one server, two mounts of it, the command, and what a tree is."""
import contextlib
import errno
import hashlib
import json
import os
import stat
import struct
import subprocess
import time

from two_mounts import TwoMounts

MIB = 1 << 20
LIST = ".snapshots"
ACL = "system.posix_acl_access"
# user:7:rw- beside the owner, the group, a mask and the others
ACL_VALUE = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, permissions, identity) for tag, permissions, identity in (
    (1, 6, 0xFFFFFFFF), (2, 6, 7), (4, 4, 0xFFFFFFFF), (16, 6, 0xFFFFFFFF), (32, 4, 0xFFFFFFFF)))


def xattrs_of(path):
    names = [name for name in os.listxattr(path, follow_symlinks=False) if name.startswith("user.") or name == ACL]
    return {name: os.getxattr(path, name, follow_symlinks=False) for name in names if "pnfsrdma" not in name}


def tree(top):
    """Everything below a directory: types, modes, owners, times, sizes, bytes, targets, extended attributes, ACLs."""
    found = {}
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            content = None
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
            elif stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            size = status.st_size if not stat.S_ISDIR(status.st_mode) else None
            found[os.path.relpath(path, top)] = (status.st_mode, status.st_uid, status.st_gid, size, status.st_mtime_ns,
                                                 status.st_nlink, content,
                                                 {} if stat.S_ISLNK(status.st_mode) else xattrs_of(path))
    return found


class SnapshotCase(TwoMounts):
    daemons = {"pool_size": "1G", "durability": "process"}

    def setUp(self):
        self.folder = self.mount / self.id().split(".")[-1]
        self.folder.mkdir()
        self.name = self.folder.name
        self.addCleanup(self.remove_all)

    def cli(self, *arguments, code=0):
        done = subprocess.run([f"{self.bin}/pnfsrdma", "--socket", f"{self.cluster.home}/console.sock", "--json",
                               *map(str, arguments)], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout) if code == 0 else done.stderr

    def take(self, name):
        return self.cli("snapshot", "create", name)

    def remove(self, *names):
        self.cli("snapshot", "remove", *names, "--yes")

    def remove_all(self):
        ready = [one for one in self.cli("snapshot", "list") if one["state"] == "ready"]
        pinned = [one["name"] for one in ready if one["pinned"]]
        if pinned:
            self.cli("snapshot", "unpin", *pinned)
        if ready:
            self.remove(*(one["name"] for one in ready))

    def of(self, snapshot, mount=None):
        """This test's folder as it was."""
        return (mount or self.mount) / LIST / snapshot / self.name

    def used(self):
        space = os.statvfs(self.mount / ".")
        return (space.f_blocks - space.f_bfree) * space.f_frsize

    def used_at_rest(self):
        """When what is freed behind the work is free."""
        used = [self.used(), None, None]
        while len(set(used)) > 1:
            time.sleep(1)
            used = [self.used(), *used[:2]]
        return used[0]

    @contextlib.contextmanager
    def fails(self, number):
        with self.assertRaises(OSError) as raised:
            yield
        self.assertEqual(errno.errorcode.get(raised.exception.errno), errno.errorcode[number])

    def make(self, name, size):
        path = self.folder / name
        content = os.urandom(size)
        path.write_bytes(content)
        return path, content
