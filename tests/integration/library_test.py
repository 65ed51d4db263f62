#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libpnfsrdma against the real daemons, beside a mount, through its Python bindings: connections, files, names.

usage: library_test.py BIN_DIRECTORY
"""
import ctypes
import errno
import os
import pathlib
import random
import shutil
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
import unittest

from library_case import BIN, LIBRARY, MIB, PRELOADED, Case  # first: see there
import cluster
import pnfsrdma


class Connecting(Case):
    def test_what_is_wrong_is_said(self):
        self.assertIn("server:/path", self.assert_fails(errno.EINVAL, pnfsrdma.connect, "nowhere"))
        self.assertIn("option writeback", self.assert_fails(errno.EINVAL, pnfsrdma.connect, self.source, "writeback"))
        self.assertIn("timeo", self.assert_fails(errno.EINVAL, pnfsrdma.connect, self.source, "soft,timeo=x"))
        self.assertIn("exported", self.assert_fails(errno.ENOENT, pnfsrdma.connect, self.source + "absent"))
        self.assertIn("volatile", self.assert_fails(errno.EPERM, pnfsrdma.connect, self.source, "require_durability=persistent"))
        started = time.monotonic()
        self.assert_fails(errno.ECONNREFUSED, pnfsrdma.connect, f"127.0.0.1:{cluster.free_port()}:/")
        self.assertLess(time.monotonic() - started, 60)
        self.client.close()

    def test_it_says_where_the_data_goes(self):
        self.assertIn("iwarp", self.client.transport)
        self.assertEqual(self.client.durability, "volatile")
        self.client.close()

    def test_the_calls_may_go_by_rdma_too(self):
        with pnfsrdma.connect(f"127.0.0.1:{self.cluster.rdma_port}:/", "proto=iwarp") as client:
            with client.open("file", os.O_RDWR | os.O_CREAT) as file:
                file.pwrite(b"x" * MIB, 0)
                file.fsync()
        self.client.close()

    def test_the_example_of_the_manual(self):
        root = pathlib.Path(__file__).parents[2]
        page = (root / "packaging/man/pnfsrdma.3.scd").read_text()
        example = self.cluster.home / "example.c"
        example.write_text(page.split("# EXAMPLES")[1].split("```")[1].replace("\\\\", "\\"))
        sanitized = "asan" in subprocess.run(["ldd", LIBRARY], capture_output=True, text=True, check=True).stdout
        subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", *(["-fsanitize=address,undefined"] if sanitized else []),
                        f"-I{root / 'library'}", example, "-o", self.cluster.home / "example", f"-L{LIBRARY.parent}", "-lpnfsrdma",
                        f"-Wl,-rpath,{LIBRARY.parent}"], check=True)
        done = subprocess.run([self.cluster.home / "example", self.source], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "durable, class volatile, by iwarp\n", ""))
        with self.client.open("greeting") as file:
            self.assertEqual(file.pread(100, 0), b"hello, remote memory\n")
        self.client.close()

    def test_a_connection_in_use_does_not_end(self):
        file = self.client.open("file", os.O_RDWR | os.O_CREAT)
        self.assert_fails(errno.EBUSY, self.client.close)
        file.pwrite(b"still there", 0)
        file.close()
        queue = self.client.queue(1)
        self.assert_fails(errno.EBUSY, self.client.close)
        queue.close()
        self.client.close()

    def test_a_child_is_told_that_the_connection_is_not_its_own(self):
        file = self.client.open("file", os.O_RDWR | os.O_CREAT)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                file.pread(1, 0)
            except OSError as error:
                code = 0 if error.errno == errno.EPERM and "parent" in str(error) else 2
            os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        file.pwrite(b"the parent goes on", 0)
        file.close()
        self.client.close()

    def test_who_is_not_root_is_refused_by_a_secure_export(self):
        child = os.fork()
        if child == 0:
            os.setgid(65534)
            os.setuid(65534)
            code = 1
            try:
                pnfsrdma.connect(self.source)
            except OSError as error:
                code = 0 if error.errno == errno.EPERM and "insecure" in str(error) else 2
            os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.client.close()


class Insecure(Case):
    options = {"insecure": True}

    def test_rights_are_those_of_the_process(self):
        with self.client.open("private", os.O_RDWR | os.O_CREAT, 0o600) as file:
            file.pwrite(b"secret", 0)
        with self.client.open("public", os.O_RDWR | os.O_CREAT, 0o644) as file:
            file.pwrite(b"news", 0)
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            outcomes = []
            client = pnfsrdma.connect(self.source)
            for path, flags in (("private", os.O_RDONLY), ("public", os.O_RDWR), ("new", os.O_RDWR | os.O_CREAT)):
                try:
                    client.open(path, flags).close()
                    outcomes.append(0)
                except OSError as error:
                    outcomes.append(error.errno)
            with client.open("public") as file:
                outcomes.append(0 if file.pread(10, 0) == b"news" else 1)
                try:
                    file.pwrite(b"x", 0)
                except OSError as error:
                    outcomes.append(error.errno)
            client.close()
            os._exit(0 if outcomes == [errno.EACCES] * 3 + [0, errno.EBADF] else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.client.close()


class Files(Case):
    one_cluster = True

    def setUp(self):
        super().setUp()
        self.mount = self.cluster.mount("actimeo=0")

    def tearDown(self):
        self.client.close()
        self.mount.unmount()

    def test_opening_is_as_open_2(self):
        self.assert_fails(errno.ENOENT, self.client.open, "new")
        self.client.open("new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640).close()
        self.assertEqual(self.client.stat("new").mode, stat.S_IFREG | 0o640)
        self.assert_fails(errno.EEXIST, self.client.open, "new", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        self.assert_fails(errno.EINVAL, self.client.open, "new", os.O_RDONLY | os.O_DIRECTORY)
        self.assert_fails(errno.EISDIR, self.client.open, ".")
        self.assert_fails(errno.ENOTDIR, self.client.open, "new/below")
        self.assert_fails(errno.ENAMETOOLONG, self.client.open, "n" * 300)
        self.assert_fails(errno.ENOENT, self.client.open, "")
        self.assert_fails(errno.EXDEV, self.client.open, "../etc/passwd")
        before = os.umask(0o077)
        try:
            self.client.open("masked", os.O_WRONLY | os.O_CREAT, 0o666).close()
        finally:
            os.umask(before)
        self.assertEqual(self.client.stat("masked").mode & 0o777, 0o600)
        (self.mount / "full").write_bytes(b"x" * 100_000)
        with self.client.open("full", os.O_RDWR | os.O_TRUNC) as file:
            self.assertEqual(file.stat().size, 0)
            self.assertEqual(file.pread(10, 0), b"")
        self.assertEqual((self.mount / "full").stat().st_size, 0)

    def test_a_default_acl_takes_the_umasks_place(self):
        shared = self.mount / "shared"
        shared.mkdir()
        none = 0xFFFFFFFF
        os.setxattr(shared, "system.posix_acl_default",
                    struct.pack("<I" + 3 * "HHI", 2, 1, 7, none, 4, 5, none, 32, 0, none))
        before = os.umask(0o077)
        try:
            self.client.open("shared/file", os.O_WRONLY | os.O_CREAT, 0o666).close()
            self.client.mkdir("shared/directory", 0o777)
        finally:
            os.umask(before)
        self.assertEqual(self.client.stat("shared/file").mode & 0o777, 0o640)
        self.assertEqual(self.client.stat("shared/directory").mode & 0o777, 0o750)

    def test_names(self):
        self.client.mkdir("d")
        self.client.mkdir("d/e", 0o700)
        self.assertEqual((self.mount / "d/e").stat().st_mode & 0o777, 0o700)
        self.client.open("/d/./e/../e/file", os.O_WRONLY | os.O_CREAT).close()
        self.client.rename("d/e/file", "d/moved")
        self.assertEqual(sorted(os.listdir(self.mount / "d")), ["e", "moved"])
        self.assert_fails(errno.EISDIR, self.client.unlink, "d/e")
        self.assert_fails(errno.ENOTDIR, self.client.rmdir, "d/moved")
        self.assert_fails(errno.ENOTEMPTY, self.client.rmdir, "d")
        self.client.unlink("d/moved")
        self.client.rmdir("d/e")
        self.client.rmdir("d")
        self.assert_fails(errno.ENOENT, self.client.stat, "d")
        self.assertTrue(stat.S_ISDIR(self.client.stat("/").mode))

    def test_directories_are_listed(self):
        self.client.mkdir("d")
        self.assertEqual(self.client.listdir("d"), [])
        names = {f"{number:0{1 + number % 200}d}" for number in range(1600)} | {"näme", "d"}
        self.client.mkdir("d/d")
        for name in names - {"d"}:
            (self.mount / "d" / name).touch()
        listed = self.client.listdir("/d/d/..")
        self.assertEqual(len(listed), len(names))
        self.assertEqual(set(listed), names)
        os.symlink("d", self.mount / "link")
        self.assertEqual(set(self.client.listdir("link")), names)
        self.assertEqual(sorted(self.client.listdir()), ["d", "link"])
        self.assert_fails(errno.ENOTDIR, self.client.listdir, "d/näme")
        self.assert_fails(errno.ENOENT, self.client.listdir, "d/missing")
        self.assert_fails(errno.EXDEV, self.client.listdir, "..")
        self.removed_while_it_is_listed(names)

    def removed_while_it_is_listed(self, names):
        """What was read before is shown, then it is empty."""
        library, entry, directory, found = pnfsrdma._library, pnfsrdma._Entry(), ctypes.c_void_p(), set()
        self.assertEqual(library.pnfsrdma_opendir(self.client._pointer, b"d", ctypes.byref(directory)), 0)
        self.assertEqual(library.pnfsrdma_readdir(directory, ctypes.byref(entry)), 1)
        shutil.rmtree(self.mount / "d")
        while (more := library.pnfsrdma_readdir(directory, ctypes.byref(entry))) == 1:
            self.assertNotIn(entry.name, found)
            found.add(entry.name)
        self.assertEqual(more, 0)
        self.assertLess(len(found), len(names) - 1)
        self.assert_fails(errno.EBUSY, self.client.close)
        self.assertEqual(library.pnfsrdma_closedir(directory), 0)

    def test_symbolic_links_are_followed(self):
        (self.mount / "real").mkdir()
        (self.mount / "real/file").write_bytes(b"found")
        os.symlink("real", self.mount / "link")
        os.symlink("../link/file", self.mount / "real/again")
        os.symlink("/etc", self.mount / "out")
        os.symlink("loop", self.mount / "loop")
        for path in ("link/file", "link/again", "real/again"):
            with self.client.open(path) as file:
                self.assertEqual(file.pread(10, 0), b"found", path)
            self.assertEqual(self.client.stat(path).size, 5, path)
        self.assertIn("out", self.assert_fails(errno.EXDEV, self.client.open, "out/passwd"))
        self.assert_fails(errno.ELOOP, self.client.open, "loop")
        self.client.unlink("real/again")
        self.assertEqual((self.mount / "real/file").read_bytes(), b"found")
        self.client.open("link/new", os.O_WRONLY | os.O_CREAT).close()
        self.assertTrue((self.mount / "real/new").exists())

    def test_the_directory_above_is_that_of_where_a_link_leads(self):
        (self.mount / "a/b").mkdir(parents=True)
        (self.mount / "a/x").write_bytes(b"right")
        (self.mount / "x").write_bytes(b"wrong")
        (self.mount / "f").write_bytes(b"")
        os.symlink("a/b", self.mount / "l")
        os.symlink("l/../x", self.mount / "m")
        for path in ("l/../x", "m", "a/b/../x", "l/./../../a/x"):
            with self.client.open(path) as file:
                self.assertEqual(file.pread(10, 0), (self.mount / path).read_bytes(), path)
                self.assertEqual(file.pread(10, 0), b"right", path)
        self.assert_fails(errno.ENOENT, self.client.open, "absent/../x")
        self.assert_fails(errno.ENOTDIR, self.client.open, "f/../x")
        self.assert_fails(errno.EXDEV, self.client.stat, "a/../..")
        self.client.rename("l/../x", "a/b/y")
        self.client.unlink("l/y")
        self.assertEqual((self.mount / "x").read_bytes(), b"wrong")
        self.assertEqual(os.listdir(self.mount / "a"), ["b"])

    def test_what_ends_with_a_slash_is_a_directory_or_nothing(self):
        (self.mount / "f").write_bytes(b"")
        (self.mount / "d/e").mkdir(parents=True)
        for path in ("f/", "f/."):
            self.assert_fails(errno.ENOTDIR, self.client.open, path)
            self.assert_fails(errno.ENOTDIR, self.client.stat, path)
        self.assert_fails(errno.ENOTDIR, self.client.unlink, "f/")
        self.assert_fails(errno.ENOTDIR, self.client.rename, "f/", "g")
        self.assert_fails(errno.ENOTDIR, self.client.rename, "f", "g/")
        self.assert_fails(errno.EISDIR, self.client.open, "new/", os.O_WRONLY | os.O_CREAT)
        self.assert_fails(errno.EISDIR, self.client.open, "d/")
        self.assert_fails(errno.EINVAL, self.client.rmdir, "d/e/.")
        self.assert_fails(errno.ENOTEMPTY, self.client.rmdir, "d/e/..")
        self.assert_fails(errno.EEXIST, self.client.mkdir, "/")
        self.client.rename("d/e/", "d/g/")
        self.client.mkdir("d/h/")
        self.client.rmdir("d/h/")
        self.assertEqual((os.listdir(self.mount / "d"), (self.mount / "f").exists(), (self.mount / "new").exists()), (["g"], True, False))

    def test_python_takes_no_path_with_a_null_byte_and_no_sink_that_cannot_be_written(self):
        (self.mount / "x").write_bytes(b"here")
        with self.assertRaises(ValueError):
            self.client.unlink("x\0y")
        with self.client.open("x") as file, self.assertRaises(TypeError):
            file.preadinto(bytes(4), 0)
        self.assertEqual((self.mount / "x").read_bytes(), b"here")

    def test_a_mount_and_the_library_see_the_same_bytes(self):
        content = os.urandom(5 * MIB + 321)
        (self.mount / "file").write_bytes(content)
        memory = self.client.alloc(8 * MIB)
        with self.client.open("file", os.O_RDWR) as file:
            self.assertEqual(file.preadinto(memory, 0), len(content))
            self.assertTrue(memory[:len(content)] == content)
            self.assertTrue(file.pread(8 * MIB, 0) == content, "by a copy")
            self.assertEqual(file.pread(100, len(content)), b"")
            self.assertEqual(file.pread(100, len(content) - 10), content[-10:])
            memory[:MIB] = os.urandom(MIB)
            self.assertEqual(file.pwrite(memory[:MIB], 77), MIB)
            self.assertEqual(file.pwrite(b"behind the end", 6 * MIB), 14)
            self.assertEqual(file.stat().size, 6 * MIB + 14)
            file.fsync()
            wanted = bytearray(content + bytes(6 * MIB - len(content)) + b"behind the end")
            wanted[77:77 + MIB] = memory[:MIB]
            self.assertTrue((self.mount / "file").read_bytes() == wanted)
            file.truncate(1000)
            self.assertTrue((self.mount / "file").read_bytes() == wanted[:1000])
            file.truncate(3000)
            self.assertTrue(file.pread(5000, 0) == wanted[:1000] + bytes(2000))
        self.client.free(memory)

    def test_data_goes_by_rdma(self):
        with self.client.open("file", os.O_RDWR | os.O_CREAT) as file:
            file.pwrite(bytes(4 * MIB), 0)
            file.fsync()
            before = self.cluster.mds_counters()
            memory = self.client.alloc(4096)
            for i in range(200):
                file.pwrite(memory, i * 4096)
                file.preadinto(memory, i * 4096)
                file.pwrite_durable(memory, i * 4096)
            after = self.cluster.mds_counters()
            self.client.free(memory)
        calls = {name: after[name] - before[name] for name in after
                 if isinstance(after[name], int) and ("read" in name or "write" in name) and after[name] != before[name]}
        self.assertEqual(calls, {}, "nothing through the server")

    def test_two_opens_of_one_file_see_each_other(self):
        with self.client.open("file", os.O_RDWR | os.O_CREAT) as one, self.client.open("file", os.O_RDWR) as two:
            one.pwrite(b"from one", 0)
            self.assertEqual(two.pread(100, 0), b"from one")
            two.pwrite(b"and from two", 8)
            self.assertEqual(one.pread(100, 0), b"from oneand from two")
            two.truncate(4)
            self.assertEqual(one.stat().size, 4)
        with self.client.open("file", os.O_RDONLY) as file:
            self.assert_fails(errno.EBADF, file.pwrite, b"x", 0)
        with self.client.open("file", os.O_WRONLY) as file:
            self.assert_fails(errno.EBADF, file.pread, 1, 0)

    def test_opens_and_closes_of_one_file_never_cross(self):
        def work(number):
            for turn in range(30):
                with self.client.open("shared", os.O_RDWR | os.O_CREAT) as file:
                    file.pwrite(bytes([number]) * 512, number * 512)
                    self.assertEqual(file.pread(512, number * 512), bytes([number]) * 512)
        failures = []

        def guarded(number):
            try:
                work(number)
            except BaseException as error:  # noqa: BLE001: told by the thread that joins
                failures.append(error)
        threads = [threading.Thread(target=guarded, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual((self.mount / "shared").read_bytes(), b"".join(bytes([n]) * 512 for n in range(6)))

    def test_flushed_appends_of_library_and_mount_lose_nothing(self):
        with self.client.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND) as file:
            for i in range(20):
                file.append(b"library %d\n" % i)
                file.fdatasync()
                with open(self.mount / "log", "ab", buffering=0) as other:
                    other.write(b"mount %d\n" % i)
        wanted = b"".join(b"library %d\nmount %d\n" % (i, i) for i in range(20))
        self.assertEqual((self.mount / "log").read_bytes(), wanted)

    def test_appends_of_several_threads_lose_nothing(self):
        with self.client.open("log", os.O_RDWR | os.O_CREAT) as file:
            places = []

            def append(number):
                for i in range(50):
                    places.append((file.append(b"%d:%03d;" % (number, i)), number, i))
            threads = [threading.Thread(target=append, args=(n,)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            content = file.pread(MIB, 0)
        self.assertEqual(len(content), 4 * 50 * 6)
        for at, number, i in places:
            self.assertEqual(content[at:at + 6], b"%d:%03d;" % (number, i))

    def test_the_library_against_a_model(self):
        rng = random.Random(19)
        model = bytearray()
        memory = self.client.alloc(2 * MIB)
        file = self.client.open("model", os.O_RDWR | os.O_CREAT)
        for turn in range(400):
            offset, count = rng.randrange(3 * MIB), rng.randrange(1, rng.choice((100, 5000, MIB)))
            choice = rng.randrange(10)
            if choice < 4:
                data = rng.randbytes(count)
                if len(model) < offset:
                    model.extend(bytes(offset - len(model)))
                model[offset:offset + count] = data
                if rng.randrange(2):
                    memory[:count] = data
                    file.pwrite(memory[:count], offset)
                else:
                    file.pwrite_durable(data, offset)
            elif choice < 7:
                self.assertTrue(file.pread(count, offset) == model[offset:offset + count], f"turn {turn}")
            elif choice == 7:
                size = rng.randrange(3 * MIB)
                file.truncate(size)
                model = model[:size] + bytes(max(0, size - len(model)))
            elif choice == 8:
                file.fsync() if rng.randrange(2) else file.fdatasync()
                self.assertEqual(file.stat().size, len(model))
            else:
                file.close()
                self.assertTrue((self.mount / "model").read_bytes() == model, f"turn {turn}")
                file = self.client.open("model", os.O_RDWR)
        file.close()
        self.client.free(memory)


class Examples(Case):
    def setUp(self):
        super().setUp()
        self.mount = self.cluster.mount()

    def tearDown(self):
        self.client.close()
        self.mount.unmount()

    def run_example(self, name, *arguments):
        return self.run_program(BIN.parent / "examples" / name, self.source, *arguments)

    def test_a_checkpoint_is_saved_verified_and_replaced(self):
        self.assertEqual(self.run_example("checkpoint", "model", "save", "4", "20", "7").stdout, "saved 7\n")
        self.assertEqual(self.run_example("checkpoint", "model", "load").stdout, "7\n")
        # A crash in the middle of the next one, which gets no further than the brick answers.
        self.cluster.signal("brick", signal.SIGSTOP)
        with subprocess.Popen([BIN.parent / "examples" / "checkpoint", self.source, "model", "save", "4", "20", "8"]) as process:
            cluster.wait_until(lambda: (self.mount / "model.8/shard0").exists(), 60, "it is at work")
            process.kill()
        self.cluster.signal("brick", signal.SIGCONT)
        self.assertEqual(self.run_example("checkpoint", "model", "load").stdout, "7\n")
        self.assertEqual(self.run_example("checkpoint", "model", "save", "4", "20", "8").stdout, "saved 8\n")
        self.assertEqual(self.run_example("checkpoint", "model", "load").stdout, "8\n")
        with open(self.mount / "model.8/shard2", "r+b", buffering=0) as shard:
            shard.seek(5 * MIB)
            shard.write(b"flipped!")
            os.fsync(shard.fileno())
        damaged = self.run_example("checkpoint", "model", "load")
        self.assertEqual((damaged.returncode, damaged.stderr), (1, "checkpoint: model.8/shard2 is damaged\n"))

    def test_an_array_of_python_is_there_in_the_next_run(self):
        root = pathlib.Path(__file__).parents[2] / "library"
        environment = {**os.environ, "PYTHONPATH": str(root / "python"), "LD_PRELOAD": PRELOADED, "ASAN_OPTIONS": "detect_leaks=0"}
        for turn in (1, 2):
            done = subprocess.run([sys.executable, root / "examples/array.py", self.source, "array"], capture_output=True, text=True,
                                  timeout=120, check=False, env=environment)
            self.assertEqual((done.stdout, done.stderr), (f"{turn * 100_000}\n", ""))

    def test_a_counter_in_cpp_counts(self):
        self.assertEqual([self.run_example("counter", "counter").stdout for _ in range(3)], ["1\n", "2\n", "3\n"])
        self.assertEqual((self.mount / "counter").read_bytes(), (3).to_bytes(8, "little"))
        self.assertIn("No such file", self.run_example("counter", "absent/counter").stderr)

    def test_a_log_is_written_and_found_again(self):
        self.assertEqual(self.run_example("append_log", "log", "write", "100").stdout.split(), [str(n) for n in range(1, 101)])
        self.assertEqual(self.run_example("append_log", "log", "write", "50").stdout.split(), [str(n) for n in range(101, 151)])
        self.assertEqual(self.run_example("append_log", "log", "check").stdout, "150\n")
        self.assertEqual(self.run_example("append_log", "log").returncode, 2)
        self.assertIn("No such file", self.run_example("append_log", "absent", "check").stderr)


class NoBrick(Case):
    def tearDown(self):
        self.client.close()

    def reach(self):
        return f"127.0.0.1:{self.cluster.nfs_port}:/"

    def test_what_is_not_durable_is_named(self):
        with pnfsrdma.connect(self.source, "softerr,timeo=10,retrans=1") as client, client.open("map", os.O_RDWR | os.O_CREAT) as file:
            file.pwrite(bytes(MIB), 0)
            file.fsync()
            with file.map(0, MIB) as image:
                ranges = [(i * 4096, 64) for i in range(100)]
                image.sync(ranges)
                self.cluster.signal("brick", signal.SIGSTOP)
                self.addCleanup(self.cluster.signal, "brick", signal.SIGCONT)
                cluster.wait_until(lambda: self.stands_still("brick"), 20, "the brick stands still")
                image.memory[0:3] = b"new"
                said = self.assert_fails(errno.ETIMEDOUT, image.sync, ranges)
                self.assertIn("not durable, or not known to be: 0+64 4096+64 ", said)
                self.assertIn(" 28672+64 and 56 more; nor what follows from range 64 on", said)
                self.cluster.signal("brick", signal.SIGCONT)
                # Meanwhile the server tells the client of its brick again.
                cluster.wait_until(lambda: self.tries(image.sync, ranges), 60, "the brick is back")
                self.assertEqual(file.pread(3, 0), b"new")

    def stands_still(self, name):
        tasks = pathlib.Path(f"/proc/{self.cluster.processes[name].pid}/task").glob("*/stat")
        return all(task.read_text().rpartition(")")[2].split()[0] == "T" for task in tasks)

    def tries(self, call, *arguments):
        try:
            call(*arguments)
        except OSError:
            return False
        return True


class Restarts(Case):
    options = {"lease_seconds": 5}

    def tearDown(self):
        self.client.close()

    def test_daemons_come_and_go(self):
        memory = self.client.alloc(MIB)
        with self.client.open("file", os.O_RDWR | os.O_CREAT) as file:
            expected = os.urandom(MIB)
            file.pwrite(expected, 0)
            file.fsync()
            for name, start in (("mds", self.cluster.start_mds), ("brick", self.cluster.start_brick), ("mds", self.cluster.start_mds)):
                self.cluster.kill(name)
                start()
                self.assertEqual(file.preadinto(memory, 0), MIB)
                self.assertTrue(memory == expected, name)
                expected = os.urandom(MIB)
                memory[:] = expected
                file.pwrite(memory, 0)
                file.append(b"grown")
                file.truncate(MIB)
                file.fsync()
        self.client.free(memory)

    def test_a_server_that_stands_still_is_waited_for(self):
        with self.client.open("file", os.O_RDWR | os.O_CREAT) as file:
            file.pwrite(b"before", 0)
            file.fsync()
            for name in ("mds", "brick"):
                self.cluster.signal(name, signal.SIGSTOP)
                timer = threading.Timer(8, self.cluster.signal, (name, signal.SIGCONT))
                timer.start()
                file.pwrite_durable(b"during", 0)
                file.append(b"more")
                file.fsync()
                timer.join()
                self.assertEqual(file.pread(6, 0), b"during", name)


if __name__ == "__main__":
    unittest.main()
