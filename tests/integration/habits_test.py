#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What programs take for granted and network file systems get wrong: privileges that a write takes away, names that another
host has replaced, listings that end. Two mounts of one export.

usage: habits_test.py BIN_DIRECTORY
"""
import ctypes
import errno
import json
import mmap
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import time
import unittest

from cluster import Cluster, wait_until

BIN = sys.argv.pop(1)
NOBODY = 65534
USER = 1234


AT_FDCWD = -100
LIBC = ctypes.CDLL(None, use_errno=True)


class FileHandle(ctypes.Structure):
    """struct file_handle"""
    _fields_ = [("handle_bytes", ctypes.c_uint), ("handle_type", ctypes.c_int), ("bytes", ctypes.c_ubyte * 128)]


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


class Habits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="512M").start_all()
        cls.a, cls.b = cls.cluster.mount(name="a"), cls.cluster.mount(name="b")

    @classmethod
    def tearDownClass(cls):
        cls.a.unmount()
        cls.b.unmount()
        cls.cluster.close()

    def setUp(self):
        self.name = self.id().rsplit(".", 1)[-1]
        self.here = self.a / self.name
        self.here.mkdir()
        self.there = self.b / self.name

    def as_user(self, work, uid=NOBODY):
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

    def privileged_file(self, mode):
        path = self.here / f"file{mode:o}"
        path.write_bytes(b"x" * 5000)
        os.chown(path, USER, USER)
        os.chmod(path, mode)
        return path

    def refused(self, number, call, *arguments, **keywords):
        with self.assertRaises(OSError) as caught:
            call(*arguments, **keywords)
        self.assertEqual(errno.errorcode[caught.exception.errno], errno.errorcode[number])

    # --- the time of birth

    def births(self, *paths):
        told = subprocess.run(["stat", "-c", "%W", *map(str, paths)], capture_output=True, text=True, check=True)
        return [int(line) for line in told.stdout.split()]

    def test_stat_tells_when_a_file_was_made(self):
        if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 6):
            self.skipTest("Linux asks for it from 6.6 on")
        path = self.here / "file"
        before = int(time.time())
        path.write_text("one")
        made = self.births(path)[0]
        self.assertLessEqual(before, made)
        self.assertLessEqual(made, int(time.time()))
        time.sleep(1.1)
        path.write_text("more")
        os.utime(path, (7, 7))
        path.rename(self.here / "renamed")
        (self.here / "link").symlink_to("renamed")
        self.assertEqual(self.births(self.here / "renamed", self.there / "renamed"), [made, made])
        self.assertGreater(self.births(self.here / "link")[0], made)
        self.assertGreaterEqual(self.births(self.a.path)[0], before - 600)
        with self.assertRaises(subprocess.CalledProcessError):
            self.births(self.here / "absent")
        # What else it says is what stat(2) says.
        mine = subprocess.run(["stat", "-c", "%a %u %g %h %i %s %b %t %T %Y %Z %F", self.here / "renamed"],
                              capture_output=True, text=True, check=True).stdout.split(" ", 11)
        status = os.stat(self.there / "renamed")
        self.assertEqual([int(value) for value in mine[1:7]], [status.st_uid, status.st_gid, status.st_nlink, status.st_ino,
                                                              status.st_size, status.st_blocks])

    # --- privileges

    def test_a_direct_read_at_the_end_sees_what_another_host_appended(self):
        (self.here / "log").write_bytes(b"1" * 4096)
        reader = os.open(self.there / "log", os.O_RDONLY | os.O_DIRECT)
        block = mmap.mmap(-1, 16384)
        self.assertEqual(os.preadv(reader, [block], 0), 4096)
        with open(self.here / "log", "ab") as log:
            log.write(b"2" * 4096)
        self.assertEqual(os.preadv(reader, [block], 4096), 4096)
        self.assertEqual(block[:4096], b"2" * 4096)
        # On both sides of the old end.
        with open(self.here / "log", "ab") as log:
            log.write(b"3" * 4096)
        self.assertEqual(os.preadv(reader, [block], 4096), 8192)
        self.assertEqual(block[:8192], b"2" * 4096 + b"3" * 4096)
        os.close(reader)

    def test_remount_changes_the_flags_of_mount_and_nothing_else(self):
        mount = self.cluster.mount(name="remounted")

        def shown():
            with open("/proc/mounts") as mounts:
                return next(line.split() for line in mounts if line.split()[1] == str(mount.path))
        source = shown()[0]

        def remount(options):
            return subprocess.run([f"{BIN}/pnfsrdma-fuse", source, str(mount.path), "-o", options], capture_output=True,
                                  text=True, timeout=60)
        writer = open(mount / "remounted", "wb")
        refused = remount("remount,ro")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("open for writing", refused.stderr)
        writer.close()
        os.close(os.open(mount / "remounted", os.O_RDONLY))  # the kernel's release of the writer is behind us
        done = remount("rw,remount,ro,nosuid,timeo=100")
        self.assertEqual((done.returncode, "timeo=100" in done.stderr), (0, True), done.stderr)
        with self.assertRaises(OSError) as caught:
            (mount / "other").touch()
        self.assertEqual(caught.exception.errno, errno.EROFS)
        self.assertIn("nosuid", shown()[3].split(","))
        again = remount("remount,rw")
        self.assertEqual((again.returncode, again.stderr), (0, ""))
        (mount / "other").touch()
        mount.unmount()
        gone = remount("remount,ro")
        self.assertEqual(gone.returncode, 1)
        self.assertIn("no pnfsrdma is mounted there", gone.stderr)

    def test_tail_f_sees_what_another_host_appends_within_seconds(self):
        """However long the file had not changed."""
        (self.here / "log").write_bytes(b"old\n")
        with open(self.there / "log", "rb") as reader:
            reader.read()
            end = time.monotonic() + 14  # those of a closed file would be believed 3, 6, 12, 24 seconds
            while time.monotonic() < end:
                os.fstat(reader.fileno())
                time.sleep(0.5)
            with open(self.here / "log", "ab") as log:
                log.write(b"new\n")
            written = time.monotonic()
            while os.fstat(reader.fileno()).st_size == 4:
                time.sleep(0.1)
                self.assertLess(time.monotonic() - written, 10, "the new line is not seen")
            self.assertLess(time.monotonic() - written, 4.5)
            self.assertEqual(reader.read(), b"new\n")

    def test_a_write_of_a_stranger_takes_the_set_id_bits_away(self):
        def overwrite(path, flags=0):
            descriptor = os.open(path, os.O_WRONLY | flags)
            with mmap.mmap(-1, 4096) as block:
                os.pwrite(descriptor, block, 0)
            os.close(descriptor)
        for mode, left in ((0o4777, 0o777), (0o2777, 0o777), (0o6777, 0o777), (0o2767, 0o2767)):
            for flags in (0, os.O_DIRECT):
                with self.subTest(f"mode {mode:o} flags {flags:o}"):
                    path = self.privileged_file(mode)
                    self.assertEqual(mode_of(path), mode)
                    self.assertEqual(self.as_user(lambda: overwrite(path, flags)), 0)
                    self.assertEqual(f"{mode_of(path):o}", f"{left:o}")
                    self.assertEqual(f"{mode_of(self.there / path.name):o}", f"{left:o}")
                    path.unlink()

    def test_a_truncate_of_a_stranger_takes_the_set_id_bits_away(self):
        for how in (lambda path: os.truncate(path, 10), lambda path: os.close(os.open(path, os.O_WRONLY | os.O_TRUNC))):
            path = self.privileged_file(0o6777)
            self.assertEqual(mode_of(path), 0o6777)
            self.assertEqual(self.as_user(lambda: how(path)), 0)
            self.assertEqual(f"{mode_of(path):o}", "777")
            path.unlink()

    def test_a_chown_takes_the_set_id_bits_away(self):
        for mode, left in ((0o6777, 0o777), (0o2767, 0o2767)):
            path = self.privileged_file(mode)
            os.chown(path, 4321, 4321)  # root's, too
            self.assertEqual(f"{mode_of(path):o}", f"{left:o}")
            self.assertEqual(f"{mode_of(self.there / path.name):o}", f"{left:o}")
            path.unlink()

    def test_roots_write_leaves_the_set_id_bits(self):
        path = self.privileged_file(0o6755)
        with open(path, "r+b") as f:
            f.write(b"new")
        self.assertEqual(f"{mode_of(path):o}", "6755")

    def test_with_writeback_a_stranger_may_write_too(self):
        mount = self.cluster.mount("writeback", name="writeback")
        path = mount / self.name / self.privileged_file(0o6777).name

        def overwrite():
            with open(path, "r+b") as f:
                f.write(b"new")
        self.assertEqual(self.as_user(lambda: os.chmod(path, 0o777)), errno.EPERM)
        self.assertEqual(self.as_user(overwrite), 0)
        self.assertEqual(f"{mode_of(path):o}", "777")
        mount.unmount()

    def test_a_program_that_may_only_be_executed_runs(self):
        path = self.here / "program"
        shutil.copyfile("/bin/true", path)
        os.chmod(path, 0o711)
        self.assertEqual(self.as_user(lambda: os.execv(path, ["true"])), 0)
        self.assertEqual(self.as_user(lambda: os.open(path, os.O_RDONLY)), errno.EACCES)
        # The server decides where the kernel does not.
        mount = self.cluster.mount("nodefault_permissions", name="server-decides")
        path = mount / self.name / "program"
        self.assertEqual(self.as_user(lambda: os.execv(path, ["true"])), 0)
        self.assertEqual(self.as_user(lambda: os.open(path, os.O_RDONLY)), errno.EACCES)
        self.assertEqual(self.as_user(lambda: os.open(path, os.O_RDWR)), errno.EACCES)
        mount.unmount()

    def test_a_mount_by_mount_8_has_its_defaults(self):
        helper, point = self.cluster.home / "mount.pnfsrdma", self.cluster.home / "by-mount"
        helper.symlink_to(pathlib.Path(self.cluster.program("fuse")).resolve())
        point.mkdir()
        for options, shown in (("rw,strictatime", set()), ("rw,nosuid", {"nosuid"}), ("rw,nosuid,nodev", {"nosuid", "nodev"})):
            subprocess.run([helper, f"127.0.0.1:{self.cluster.nfs_port}:/", point, "-o", options], check=True, timeout=60)
            mounted = [line.split()[3] for line in pathlib.Path("/proc/mounts").read_text().splitlines() if str(point) in line]
            subprocess.run(["umount", point], check=True, timeout=60)
            self.assertEqual(set(mounted[0].split(",")) & {"nosuid", "nodev"}, shown)

    def test_a_strangers_link_is_the_hosts_decision(self):
        """Linux asks fs.protected_hardlinks; where that is off, who may write the directory may link."""
        (self.here / "file").write_text("secret")
        os.chmod(self.here / "file", 0o600)
        os.chmod(self.here, 0o777)
        setting = pathlib.Path("/proc/sys/fs/protected_hardlinks")
        before = setting.read_text()
        try:
            for protected, answer in (("0", 0), ("1", errno.EPERM)):
                setting.write_text(protected)
                self.assertEqual(self.as_user(lambda: os.link(self.here / "file", self.here / f"link{protected}")), answer)
        finally:
            setting.write_text(before)

    # --- names

    def test_an_open_goes_by_the_name_whatever_another_host_made_of_it(self):
        (self.here / "log").write_text("old")
        held = os.open(self.here / "log", os.O_RDONLY)
        os.rename(self.there / "log", self.there / "log.1")
        (self.there / "log").write_text("new")
        self.assertEqual((self.here / "log").read_text(), "new")
        (self.there / "temporary").write_text("newer")
        os.rename(self.there / "temporary", self.there / "log")
        self.assertEqual((self.here / "log").read_text(), "newer")
        (self.there / "log").unlink()
        self.refused(errno.ENOENT, os.open, self.here / "log", os.O_RDONLY)
        with open(self.here / "log", "a") as f:  # makes a new one
            f.write("newest")
        # The other one took that name away itself a moment ago: for acregmin it may believe so (lookupcache=all).
        wait_until((self.there / "log").exists, 10, "the new file is seen")
        self.assertEqual((self.there / "log").read_text(), "newest")
        self.assertEqual(os.read(held, 100), b"old")
        os.close(held)

    def test_an_open_by_descriptor_is_of_the_file_that_is_open(self):
        (self.here / "file").write_text("old")
        held = os.open(self.here / "file", os.O_RDONLY)
        (self.there / "new").write_text("new")
        os.rename(self.there / "new", self.there / "file")
        for _ in range(2):
            with open(f"/proc/self/fd/{held}") as f:
                self.assertEqual(f.read(), "old")
        with open(self.here / "file") as f:
            self.assertEqual(f.read(), "new")
        with open(f"/proc/self/fd/{held}") as f:
            self.assertEqual(f.read(), "old")
        os.close(held)

    def test_hard_links_and_renamed_files_are_opened(self):
        (self.here / "a").write_text("text")
        os.link(self.here / "a", self.here / "b")
        (self.there / "b").unlink()
        self.assertEqual((self.here / "a").read_text(), "text")
        (self.here / "directory").mkdir()
        os.rename(self.here / "a", self.here / "directory" / "c")
        os.rename(self.here / "directory", self.here / "moved")
        self.assertEqual((self.here / "moved" / "c").read_text(), "text")

    def test_who_may_not_search_the_directory_opens_by_descriptor(self):
        (self.here / "closed").mkdir()
        path = self.here / "closed" / "file"
        path.write_text("text")
        os.chmod(path, 0o644)
        os.chmod(self.here / "closed", 0o700)
        held = os.open(path, os.O_RDONLY)
        self.assertEqual(self.as_user(lambda: os.close(os.open(f"/proc/self/fd/{held}", os.O_RDONLY))), 0)
        os.close(held)

    def test_a_removed_directory_that_is_open_is_empty_if_it_was_removed_here(self):
        for remover in (self.here, self.there):
            (self.here / "directory").mkdir()
            held = os.open(self.here / "directory", os.O_RDONLY)
            os.rmdir(remover / "directory")
            if remover == self.here:
                self.assertEqual(os.listdir(held), [])
            else:  # as with NFS: what is only not there any more must not look empty
                self.refused(errno.ESTALE, os.listdir, held)
            st = os.fstat(held)
            self.assertTrue(stat.S_ISDIR(st.st_mode))
            if remover == self.here:
                self.assertEqual(st.st_nlink, 0)
            os.close(held)

    def test_a_program_leaves_its_removed_working_directory(self):
        """As a shell does: the kernel asks whether the directory may be searched, and where `..` leads it knows."""
        removals = {"rmdir": "rmdir ../left", "rename": "mkdir ../other; mv -T ../other ../left"}
        for name, removal in removals.items():
            with self.subTest(name):
                said = subprocess.run(["bash", "-ec", f"mkdir left; cd left; {removal}; ls -A; sleep 1.5; ls -d ..; cd ..; pwd"],
                                      cwd=self.here, capture_output=True, text=True)
                self.assertEqual((said.stdout, said.stderr, said.returncode), (f"..\n{self.here}\n", "", 0))
                shutil.rmtree(self.here / "left", ignore_errors=True)

    # --- handles of the kernel (name_to_handle_at, open_by_handle_at)

    def handle_of(self, path):
        handle = FileHandle(handle_bytes=128)
        if LIBC.name_to_handle_at(AT_FDCWD, os.fsencode(path), ctypes.byref(handle), ctypes.byref(ctypes.c_int()), 0) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return handle

    def open_by_handle(self, handle, flags=os.O_RDONLY):
        mount = os.open(self.a / ".", os.O_RDONLY)
        file = LIBC.open_by_handle_at(mount, ctypes.byref(handle), flags)
        number = ctypes.get_errno()
        os.close(mount)
        if file < 0:
            raise OSError(number, os.strerror(number))
        return file

    def content_by_handle(self, handle):
        with os.fdopen(self.open_by_handle(handle), "rb") as file:
            return file.read()

    def make_the_kernel_forget(self, most):
        """Until it knows no more than so many files of this mount."""
        for _ in range(100):
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("2")
            if json.loads(os.getxattr(self.a / ".", "system.pnfsrdma.status"))["files"]["known_to_kernel"] <= most:
                return
            time.sleep(0.1)
        self.fail("the kernel forgets nothing")

    def test_a_handle_opens_what_the_kernel_has_forgotten_and_nothing_that_is_gone(self):
        names = [f"file{i}" for i in range(50)]
        for name in names:
            (self.here / name).write_text(name)
        (self.here / "directory").mkdir()
        (self.here / "directory" / "inside").write_text("inside")
        handles = {name: self.handle_of(self.here / name) for name in [*names, "directory"]}
        for turn in range(2):
            self.make_the_kernel_forget(most=5)
            for name in names:
                self.assertEqual(self.content_by_handle(handles[name]), name.encode(), f"turn {turn}")
            # Known by its name before it is asked for by the handle.
            self.make_the_kernel_forget(most=5)
            self.assertEqual((self.here / names[0]).read_text(), names[0])
            self.assertEqual(self.content_by_handle(handles[names[0]]), names[0].encode())
        self.make_the_kernel_forget(most=5)
        directory = self.open_by_handle(handles["directory"], os.O_RDONLY | os.O_DIRECTORY)
        self.assertEqual(os.listdir(directory), ["inside"])
        os.close(directory)
        os.unlink(self.there / names[1])
        self.make_the_kernel_forget(most=5)
        self.refused(errno.ESTALE, self.open_by_handle, handles[names[1]])
        handles[names[2]].bytes[0] ^= 0x55  # of no file that ever was
        self.refused(errno.ESTALE, self.open_by_handle, handles[names[2]])

    # --- listings

    def test_rewinddir_lists_anew(self):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
        libc.readdir.argtypes = libc.rewinddir.argtypes = libc.closedir.argtypes = [ctypes.c_void_p]
        directory = libc.opendir(bytes(self.here))

        def names():
            found = []
            while entry := libc.readdir(directory):
                found.append(ctypes.string_at(entry + 19).decode())  # d_name of struct dirent
            return sorted(found)
        (self.here / "a").touch()
        self.assertEqual(names(), [".", "..", "a"])
        (self.here / "b").touch()
        (self.here / "a").unlink()
        libc.rewinddir(directory)
        self.assertEqual(names(), [".", "..", "b"])
        libc.closedir(directory)

    def test_a_listing_beside_renames_ends(self):
        names = {f"f{i}" for i in range(1500)}
        for name in names:
            (self.here / name).touch()
        seen = []
        with os.scandir(self.here) as entries:
            for entry in entries:
                seen.append(entry.name)
                self.assertLessEqual(len(seen), len(names) + 1)
                os.rename(entry.path, self.here / "TEMPORARY")
                os.rename(self.here / "TEMPORARY", entry.path)
        self.assertEqual(set(seen), names)


if __name__ == "__main__":
    unittest.main()
