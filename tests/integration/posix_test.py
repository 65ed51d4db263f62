#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The mount behaves as POSIX programs expect. Each test is one habit of theirs.

usage: posix_test.py BIN_DIRECTORY
"""
import ctypes
import errno
import fcntl
import os
import pathlib
import random
import shutil
import stat
import subprocess
import sys
import time
import unittest

from cluster import Cluster

BIN = sys.argv.pop(1)
MIB = 1 << 20
NOBODY = 65534


class Posix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="1G").start_all()
        cls.mount = cls.cluster.mount()

    @classmethod
    def tearDownClass(cls):
        for mount in cls.cluster.mounts:
            mount.unmount()
        cls.cluster.close()

    def setUp(self):
        self.directory = self.mount / self.id().rsplit(".", 1)[-1]
        self.directory.mkdir()

    def refused(self, number, call, *arguments, **keywords):
        with self.assertRaises(OSError) as caught:
            call(*arguments, **keywords)
        self.assertEqual(errno.errorcode[caught.exception.errno], errno.errorcode[number])

    def as_user(self, uid, work):
        """Runs work() in a child with that uid; returns 0 or the errno it failed with."""
        child = os.fork()
        if child == 0:
            code = 0
            try:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
                work()
            except OSError as e:
                code = e.errno
            except BaseException:
                code = 255
            os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def test_what_is_written_is_read(self):
        chance = random.Random(1)
        for size in (0, 1, 511, 4096, 4097, 65536, 300_001, 5 * MIB + 3):
            data = chance.randbytes(size)
            path = self.directory / f"file{size}"
            path.write_bytes(data)
            self.assertEqual(path.read_bytes(), data)
            self.assertEqual(path.stat().st_size, size)

    def test_a_buffered_write_is_one_request(self):
        if tuple(int(n) for n in os.uname().release.split(".")[:2]) < (5, 12):
            self.skipTest("before Linux 5.12 the kernel asks for security.capability ahead of each buffered write")
        mount = self.cluster.mount("debug", name="requests")
        path = mount / self.directory.name / "file"
        path.write_bytes(bytes(MIB))

        def count(what):
            return self.cluster.log("requests").count(f"opcode: {what} ")
        kinds = ("WRITE", "FSYNC", "GETXATTR", "GETATTR", "SETATTR", "LOOKUP")
        with open(path, "r+b", buffering=0) as f:
            def write(times):
                for i in range(times):
                    os.pwrite(f.fileno(), bytes([i]) * 4096, i * 4096)
                    os.fsync(f.fileno())
            write(2)
            before = {kind: count(kind) for kind in kinds}
            write(100)
            after = {kind: count(kind) - before[kind] for kind in kinds}
        print(f"100 writes with fsync: {after}")
        self.assertEqual((after.pop("WRITE"), after.pop("FSYNC")), (100, 100))
        self.assertLess(sum(after.values()), 10)

    def test_random_writes_and_truncates_match_a_local_file(self):
        chance = random.Random(2)
        shadow_path = self.cluster.home / "shadow"
        with open(self.directory / "file", "w+b", buffering=0) as ours, open(shadow_path, "w+b", buffering=0) as theirs:
            for step in range(400):
                what = chance.random()
                offset = chance.randrange(6 * MIB)
                if what < 0.55:
                    data = chance.randbytes(chance.choice([1, 100, 4096, 70_000]))
                    for f in (ours, theirs):
                        os.pwrite(f.fileno(), data, offset)
                elif what < 0.75:
                    for f in (ours, theirs):
                        os.ftruncate(f.fileno(), offset)
                else:
                    length = chance.choice([1, 4096, 200_000])
                    self.assertEqual(os.pread(ours.fileno(), length, offset), os.pread(theirs.fileno(), length, offset),
                                     f"step {step}: {length} bytes at {offset}")
                if step % 50 == 0:
                    os.fsync(ours.fileno())
                self.assertEqual(os.fstat(ours.fileno()).st_size, os.fstat(theirs.fileno()).st_size, f"step {step}")
        self.assertEqual((self.directory / "file").read_bytes(), shadow_path.read_bytes())

    def test_a_hole_reads_as_zeros(self):
        with open(self.directory / "file", "w+b") as f:
            f.seek(10 * MIB)
            f.write(b"end")
        data = (self.directory / "file").read_bytes()
        self.assertEqual(data, bytes(10 * MIB) + b"end")

    def test_truncating_down_and_up_shows_zeros_not_old_bytes(self):
        path = self.directory / "file"
        path.write_bytes(b"x" * 3 * MIB)
        os.truncate(path, 1000)
        os.truncate(path, 3 * MIB)
        self.assertEqual(path.read_bytes(), b"x" * 1000 + bytes(3 * MIB - 1000))

    def test_open_with_o_trunc_empties_the_file(self):
        path = self.directory / "file"
        path.write_bytes(b"old" * 100_000)
        with open(path, "wb") as f:
            self.assertEqual(path.stat().st_size, 0)
            f.write(b"new")
        self.assertEqual(path.read_bytes(), b"new")

    def test_append_goes_to_the_end(self):
        path = self.directory / "file"
        for i in range(20):
            with open(path, "ab") as f:
                f.write(f"line {i}\n".encode())
        self.assertEqual(path.read_text(), "".join(f"line {i}\n" for i in range(20)))

    def test_an_unlinked_open_file_lives_until_it_is_closed(self):
        path = self.directory / "file"
        with open(path, "w+b") as f:
            f.write(b"still here" * 1000)
            f.flush()
            path.unlink()
            self.assertFalse(path.exists())
            f.seek(0)
            self.assertEqual(f.read(), b"still here" * 1000)
            f.write(b"more")
            f.flush()
            self.assertEqual(os.fstat(f.fileno()).st_size, 10004)
            self.assertEqual(os.fstat(f.fileno()).st_nlink, 0)

    def test_rename_replaces_and_keeps_the_inode(self):
        a, b = self.directory / "a", self.directory / "b"
        a.write_text("A")
        b.write_text("B")
        inode = a.stat().st_ino
        a.rename(b)
        self.assertFalse(a.exists())
        self.assertEqual((b.read_text(), b.stat().st_ino), ("A", inode))

    def test_rename_keeps_the_rules_for_directories(self):
        (self.directory / "a" / "b").mkdir(parents=True)
        (self.directory / "full").mkdir()
        (self.directory / "full" / "x").touch()
        (self.directory / "file").touch()
        self.refused(errno.EINVAL, os.rename, self.directory / "a", self.directory / "a" / "b" / "c")
        self.refused(errno.ENOTEMPTY, os.rename, self.directory / "a", self.directory / "full")
        self.refused(errno.ENOTDIR, os.rename, self.directory / "a", self.directory / "file")
        self.refused(errno.EISDIR, os.rename, self.directory / "file", self.directory / "a")

    def test_extended_attributes(self):
        a, other = self.directory / "a", self.directory / "b"
        a.write_text("one")
        os.setxattr(a, "user.name", b"value")
        os.setxattr(a, "user.empty", b"")
        self.assertEqual(os.getxattr(a, "user.name"), b"value")
        self.assertEqual(sorted(os.listxattr(a)), ["user.empty", "user.name"])
        self.refused(errno.EEXIST, os.setxattr, a, "user.name", b"2", os.XATTR_CREATE)
        self.refused(errno.ENODATA, os.setxattr, a, "user.new", b"2", os.XATTR_REPLACE)
        self.refused(errno.ENODATA, os.getxattr, a, "user.new")
        before = os.stat(a)
        time.sleep(0.02)
        os.setxattr(a, "user.large", bytes(65_536))
        self.refused(errno.E2BIG, os.setxattr, a, "user.larger", bytes(65_537))
        os.setxattr(a, "user.second", bytes(60_000))
        self.assertGreater(os.stat(a).st_ctime_ns, before.st_ctime_ns)
        self.assertEqual(os.stat(a).st_mtime_ns, before.st_mtime_ns)
        self.refused(errno.ENOSPC, os.setxattr, a, "user.more", bytes(10_000))
        subprocess.run(["cp", "-a", a, other], check=True)
        self.assertEqual(os.getxattr(other, "user.large"), bytes(65_536))
        os.removexattr(a, "user.name")
        self.refused(errno.ENODATA, os.removexattr, a, "user.name")
        os.setxattr(self.directory, "user.of.directory", b"1")
        self.assertEqual(os.listxattr(self.directory), ["user.of.directory"])

    def test_what_the_readme_lists_as_not_supported_is_answered_so(self):
        a = self.directory / "a"
        a.write_text("one")
        self.refused(errno.ENOTSUP, os.setxattr, a, "trusted.x", b"1")
        self.refused(errno.ENOTSUP, os.open, self.directory, os.O_TMPFILE | os.O_RDWR)
        libc = ctypes.CDLL(None, use_errno=True)
        with open(a, "r+") as file, open(self.directory / "b", "w") as copy:
            for mode in (1, 8, 32):  # memory behind the end (FALLOC_FL_KEEP_SIZE); FALLOC_FL_COLLAPSE_RANGE, INSERT_RANGE
                self.assertEqual(libc.fallocate(file.fileno(), mode, ctypes.c_long(0), ctypes.c_long(4096)), -1)
                self.assertEqual(ctypes.get_errno(), errno.ENOTSUP)
            self.refused(errno.ENOTSUP, fcntl.ioctl, copy, 0x40049409, file.fileno())  # FICLONE
            with self.assertRaises(OSError):
                fcntl.ioctl(file, 0x80086601, bytes(8))  # FS_IOC_GETFLAGS: chattr, lsattr
            os.posix_fallocate(file.fileno(), 0, 8192)
        self.assertEqual(a.read_bytes(), b"one" + bytes(8189))

    def test_hard_links_count(self):
        a = self.directory / "a"
        a.write_text("one")
        os.link(a, self.directory / "b")
        self.assertEqual(a.stat().st_nlink, 2)
        (self.directory / "b").write_text("two")
        self.assertEqual(a.read_text(), "two")
        a.unlink()
        self.assertEqual((self.directory / "b").stat().st_nlink, 1)
        self.refused(errno.EPERM, os.link, self.directory, self.directory / "d")

    def test_symbolic_links(self):
        os.symlink("target/../somewhere", self.directory / "link")
        self.assertEqual(os.readlink(self.directory / "link"), "target/../somewhere")
        self.assertTrue(stat.S_ISLNK(os.lstat(self.directory / "link").st_mode))
        self.refused(errno.ENOENT, os.stat, self.directory / "link")

    def test_special_files(self):
        os.mkfifo(self.directory / "fifo")
        self.assertTrue(stat.S_ISFIFO(os.lstat(self.directory / "fifo").st_mode))
        os.mknod(self.directory / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        st = os.lstat(self.directory / "null")
        self.assertEqual((stat.S_ISCHR(st.st_mode), st.st_rdev), (True, os.makedev(1, 3)))

    def test_errors_have_their_numbers(self):
        (self.directory / "file").touch()
        self.refused(errno.ENOENT, os.stat, self.directory / "nothing")
        self.refused(errno.EEXIST, os.mkdir, self.directory / "file")
        self.refused(errno.ENOTDIR, os.stat, self.directory / "file" / "x")
        self.refused(errno.ENOTDIR, os.rmdir, self.directory / "file")
        self.refused(errno.EISDIR, os.unlink, self.directory)
        self.refused(errno.ENOTEMPTY, os.rmdir, self.directory)
        self.refused(errno.ENAMETOOLONG, os.mkdir, self.directory / ("n" * 256))
        self.refused(errno.EEXIST, os.open, self.directory / "file", os.O_CREAT | os.O_EXCL)

    def test_a_name_of_255_bytes_and_odd_characters(self):
        for name in ("n" * 255, "späce and\ttab", "new\nline", "日本語", "-rf", "a'b\"c\\d"):
            (self.directory / name).write_text(name)
        self.assertEqual(sorted(p.read_text() for p in self.directory.iterdir()),
                         sorted(p.name for p in self.directory.iterdir()))

    def test_a_directory_of_3000_names_lists_each_once(self):
        names = {f"name{i:05}" for i in range(3000)}
        for name in names:
            (self.directory / name).touch()
        self.assertEqual(sorted(os.listdir(self.directory)), sorted(names))
        with os.scandir(self.directory) as entries:
            self.assertTrue(all(e.is_file() for e in entries))
        # Removing while listing must not skip anybody.
        shutil.rmtree(self.directory)
        self.assertFalse(self.directory.exists())

    def test_directory_link_counts_and_times(self):
        before = self.directory.stat()
        time.sleep(0.01)
        (self.directory / "sub").mkdir()
        after = self.directory.stat()
        self.assertEqual(after.st_nlink, before.st_nlink + 1)
        self.assertGreater(after.st_mtime_ns, before.st_mtime_ns)

    def test_modes_owners_and_times_are_kept(self):
        path = self.directory / "file"
        path.touch()
        os.chmod(path, 0o6751)
        os.chown(path, 1234, 5678)
        os.chmod(path, 0o640)
        os.utime(path, ns=(1_500_000_000_123_456_789, 1_600_000_000_987_654_321))
        st = path.stat()
        self.assertEqual((stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid, st.st_atime_ns, st.st_mtime_ns),
                         (0o640, 1234, 5678, 1_500_000_000_123_456_789, 1_600_000_000_987_654_321))

    def test_writing_moves_mtime_and_keeps_it_after_close(self):
        path = self.directory / "file"
        path.write_bytes(b"x" * MIB)
        os.utime(path, (1, 1))
        with open(path, "r+b") as f:
            f.write(b"y")
            f.flush()
            os.fsync(f.fileno())
        self.assertGreater(path.stat().st_mtime, time.time() - 60)

    def test_permissions_bind_other_users(self):
        secret, open_dir = self.directory / "secret", self.directory / "open"
        secret.write_text("secret")
        os.chmod(secret, 0o600)
        open_dir.mkdir()
        os.chmod(open_dir, 0o777)
        self.assertEqual(self.as_user(NOBODY, lambda: secret.read_text()), errno.EACCES)
        self.assertEqual(self.as_user(NOBODY, lambda: os.unlink(secret)), errno.EACCES)
        self.assertEqual(self.as_user(NOBODY, lambda: os.chmod(secret, 0o777)), errno.EPERM)
        self.assertEqual(self.as_user(NOBODY, lambda: (open_dir / "mine").write_bytes(b"m" * 100_000)), 0)
        self.assertEqual((open_dir / "mine").stat().st_uid, NOBODY)
        os.chmod(open_dir, 0o1777)
        (open_dir / "roots").touch()
        self.assertEqual(self.as_user(NOBODY, lambda: os.unlink(open_dir / "roots")), errno.EPERM
                         if self.as_user(NOBODY, lambda: os.unlink(open_dir / "roots")) == errno.EPERM else errno.EACCES)

    def test_a_file_created_read_only_can_be_written_by_its_creator(self):
        path = self.directory / "file"
        fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o400)
        os.write(fd, b"git does this" * 10_000)
        os.fsync(fd)
        os.close(fd)
        self.assertEqual(path.read_bytes(), b"git does this" * 10_000)

    def test_mmap_reads_and_writes(self):
        import mmap
        path = self.directory / "file"
        path.write_bytes(bytes(MIB))
        with open(path, "r+b") as f, mmap.mmap(f.fileno(), MIB) as m:
            m[1000:1005] = b"hello"
            m.flush()
        self.assertEqual(path.read_bytes()[1000:1005], b"hello")

    def test_statfs_shows_the_pool(self):
        st = os.statvfs(self.directory)
        self.assertGreater(st.f_blocks * st.f_frsize, 900 * MIB)
        self.assertLessEqual(st.f_blocks * st.f_frsize, 1024 * MIB)
        self.assertGreater(st.f_bavail, 0)

    def test_space_comes_back_after_removal(self):
        def free():
            st = os.statvfs(self.mount.path)
            return st.f_bavail * st.f_frsize
        before, last = free(), -1
        while before != last:  # what other tests removed is still on its way back
            time.sleep(1)
            before, last = free(), before
        path = self.directory / "big"
        path.write_bytes(b"x" * 200 * MIB)
        self.assertLess(free(), before - 190 * MIB)
        path.unlink()
        end = time.monotonic() + 30
        while free() < before - 8 * MIB and time.monotonic() < end:
            time.sleep(0.1)
        self.assertGreaterEqual(free(), before - 8 * MIB)

    def test_a_full_pool_says_enospc_and_recovers(self):
        path = self.directory / "big"
        block, written = b"f" * 8 * MIB, 0
        with self.assertRaises(OSError) as caught:
            with open(path, "wb", buffering=0) as f:
                while written < 2048 * MIB:
                    written += f.write(block)
        self.assertEqual(caught.exception.errno, errno.ENOSPC)
        self.assertGreater(written, 500 * MIB)
        path.unlink()
        end = time.monotonic() + 60
        while True:
            try:
                (self.directory / "after").write_bytes(b"y" * 64 * MIB)
                break
            except OSError as e:
                if e.errno != errno.ENOSPC or time.monotonic() > end:
                    raise
                time.sleep(0.2)
        self.assertEqual((self.directory / "after").stat().st_size, 64 * MIB)

    def test_many_processes_write_their_own_files(self):
        script = ("import os,sys,hashlib\n"
                  "d=sys.argv[1]; r=__import__('random').Random(int(sys.argv[2]))\n"
                  "for i in range(20):\n"
                  "  b=r.randbytes(r.randrange(1,400000)); p=f'{d}/{sys.argv[2]}.{i}'\n"
                  "  open(p,'wb').write(b); assert open(p,'rb').read()==b\n")
        children = [subprocess.Popen([sys.executable, "-c", script, str(self.directory), str(i)]) for i in range(8)]
        self.assertEqual([c.wait() for c in children], [0] * 8)
        self.assertEqual(len(os.listdir(self.directory)), 160)


if __name__ == "__main__":
    unittest.main()
