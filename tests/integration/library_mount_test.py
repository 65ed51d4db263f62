#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libpnfsrdma through a mount, as a user who is nobody to the server: the cases of a connection of its own, and what only a
mount promises.

usage: library_mount_test.py BIN_DIRECTORY
"""
import contextlib
import errno
import mmap
import os
import pathlib
import signal
import stat
import time
import unittest

from library_case import BIN, MIB, Case  # first: see there
import library_queue_test
import library_test
import library_verify_test
import library_words_test
import pnfsrdma

NOBODY = 65534


def become(user, groups):
    """The effective user and groups of all threads; the real ones stay root's, who may come back and send signals."""
    os.seteuid(0)
    os.setgroups(groups)
    os.setegid(user)
    os.seteuid(user)


class AsRoot:
    """What it stands for, with every call made as root; but signals, which need only root's real user: to change the user of
    all threads waits for those that wait for the brick."""

    def __init__(self, target):
        self._target = target

    def __getattr__(self, name):
        value = getattr(self._target, name)
        return self._call(value) if callable(value) and name != "signal" else value

    def __truediv__(self, name):
        return self._target / name

    @staticmethod
    def _call(function):
        def call(*arguments, **options):
            user, groups = os.geteuid(), os.getgroups()
            become(0, groups)
            try:
                return function(*arguments, **options)
            finally:
                become(user, groups)
        return call


class ThroughAMount(Case):
    """Connects to a mount as a user, with an export that is not `insecure`. What its cases mount is the same mount."""

    def reach(self):
        through = AsRoot(self.cluster.mount("actimeo=0"))
        self.cluster = AsRoot(self.cluster)
        self.cluster.mount = lambda *_: through
        os.chmod(through.path, 0o777)
        self.addCleanup(become, 0, os.getgroups())
        become(NOBODY, [])
        self.through = through
        return str(through.path)


class Files(ThroughAMount, library_test.Files):
    pass


class Examples(ThroughAMount, library_test.Examples):
    def setUp(self):
        super().setUp()
        if not all(folder.stat().st_mode & stat.S_IXOTH for folder in BIN.resolve().parents):
            print(f"as root, for nobody else reaches {BIN}: {self.id()}")
            become(0, [])

    def test_an_array_of_python_is_there_in_the_next_run(self):
        become(0, [])  # the interpreter may be where nobody else gets
        super().test_an_array_of_python_is_there_in_the_next_run()


class Restarts(ThroughAMount, library_test.Restarts):
    pass


class Queues(ThroughAMount, library_queue_test.Queues):
    pass


class Maps(ThroughAMount, library_queue_test.Maps):
    pass


class SeveralBricks(ThroughAMount, library_queue_test.SeveralBricks):
    pass


class Words(ThroughAMount, library_words_test.Words):
    pass


class Verification(ThroughAMount, library_verify_test.Verification):
    def flip_a_bit_behind(self, *where):
        become(0, [])
        super().flip_a_bit_behind(*where)
        become(NOBODY, [])


class CutOff(library_words_test.CutOff):
    """As root all the time: to change the user of all threads waits for those that wait for the brick."""

    def reach(self):
        return str(self.cluster.mount("actimeo=0").path)


class Mounted(ThroughAMount):
    def tearDown(self):
        with contextlib.suppress(OSError):
            self.client.close()

    def assert_written(self, queue, file, memory, at):
        queue.submit([file.operation(pnfsrdma.WRITE, memory, at)])
        self.assertEqual(queue.reap(1, 60)[0].result, len(memory))

    def test_what_is_wrong_is_said(self):
        self.assertIn("not on a mount of pnfsrdma-fuse", self.assert_fails(errno.ENOTSUP, pnfsrdma.connect, "/tmp"))
        self.assertIn("options soft", self.assert_fails(errno.EINVAL, pnfsrdma.connect, self.source, "soft"))
        self.assert_fails(errno.ENOENT, pnfsrdma.connect, self.source + "/absent")
        pathlib.Path(self.source, "file").write_bytes(b"x")
        self.assert_fails(errno.ENOTDIR, pnfsrdma.connect, self.source + "/file")
        self.assertEqual(self.client.durability, "volatile")
        self.assertIn("iwarp", self.client.transport)

    test_a_connection_in_use_does_not_end = library_test.Connecting.test_a_connection_in_use_does_not_end
    test_a_child_is_told_that_the_connection_is_not_its_own = library_test.Connecting.test_a_child_is_told_that_the_connection_is_not_its_own

    def test_a_folder_of_the_mount_is_a_source_too(self):
        pathlib.Path(self.source, "d").mkdir()
        with pnfsrdma.connect(self.source + "/d") as client:
            with client.open("file", os.O_WRONLY | os.O_CREAT) as file:
                file.pwrite(b"below", 0)
            self.assert_fails(errno.EXDEV, client.open, "../file", os.O_WRONLY | os.O_CREAT)
        self.assertEqual(pathlib.Path(self.source, "d/file").read_bytes(), b"below")

    def test_it_goes_through_the_ring(self):
        memory = self.client.alloc(64 * 4096)
        with self.client.open("file", os.O_RDWR | os.O_CREAT) as file, self.client.queue(64) as queue:
            file.pwrite(memory, 0)
            file.fsync()  # the growth
            pieces = [memory[i * 4096:(i + 1) * 4096] for i in range(64)]
            before = self.through.statistics()
            for opcode, flags in ((pnfsrdma.WRITE, 0), (pnfsrdma.WRITE, pnfsrdma.DURABLE), (pnfsrdma.READ, 0)):
                queue.submit([file.operation(opcode, piece, i * 4096, flags) for i, piece in enumerate(pieces)])
                done = []
                while len(done) < 64:
                    done += queue.reap(64, 60)
                self.assertEqual({each.result for each in done}, {4096})
            after = self.through.statistics()
        self.assertEqual(after["ring_operations"] - before["ring_operations"], 3 * 64)
        self.assertLess(after["ring_handed_back"] - before["ring_handed_back"], 64)
        self.client.free(memory)

    def test_rights_are_those_of_the_process(self):
        pathlib.Path(self.source, "own").write_bytes(b"x" * 4096)
        os.chmod(pathlib.Path(self.source, "own"), 0o400)
        self.assert_fails(errno.EACCES, self.client.open, "own", os.O_RDWR)
        become(0, [])
        pathlib.Path(self.source, "roots").write_bytes(b"x" * 4096)
        os.chmod(pathlib.Path(self.source, "roots"), 0o604)
        become(NOBODY, [])
        self.assert_fails(errno.EACCES, self.client.open, "roots", os.O_RDWR)
        self.assert_fails(errno.EPERM, os.chmod, pathlib.Path(self.source, "roots"), 0o666)
        memory = self.client.alloc(4096)
        with self.client.open("roots") as file, self.client.queue(2) as queue:
            queue.submit([file.operation(pnfsrdma.READ, memory, 0, 0, 1), file.operation(pnfsrdma.WRITE, memory, 0, 0, 2)])
            done = {}
            while len(done) < 2:
                done |= {each.user_data: each.result for each in queue.reap(2, 60)}
            self.assertEqual(done, {1: 4096, 2: -errno.EBADF})
        self.assertEqual(bytes(memory), b"x" * 4096)
        self.client.free(memory)

    def test_readers_through_the_page_cache_see_each_write_at_once(self):
        path = pathlib.Path(self.source, "file")
        path.write_bytes(bytes(MIB))
        memory = self.client.alloc(4096)
        with self.client.open("file", os.O_RDWR) as file, self.client.queue(1) as queue, open(path, "rb", buffering=0) as reader:
            with mmap.mmap(reader.fileno(), MIB, prot=mmap.PROT_READ) as mapped:
                for turn in range(200):
                    at = turn % 256 * 4096
                    self.assertEqual(os.pread(reader.fileno(), 4096, at), bytes(4096))
                    self.assertEqual(mapped[at], 0)
                    memory[:] = bytes([turn % 255 + 1]) * 4096
                    self.assert_written(queue, file, memory, at)
                    self.assertEqual(os.pread(reader.fileno(), 4096, at), bytes(memory), turn)
                    self.assertEqual(mapped[at + 4095], memory[0], turn)
        self.client.free(memory)

    def test_what_the_page_cache_has_taken_is_read(self):
        path = pathlib.Path(self.source, "file")
        path.write_bytes(bytes(MIB))
        memory = self.client.alloc(4096)
        with self.client.open("file", os.O_RDWR) as file, self.client.queue(1) as queue, open(path, "r+b", buffering=0) as writer:
            for turn in range(100):
                os.pwrite(writer.fileno(), bytes([turn + 1]) * 4096, turn * 4096)
                queue.submit([file.operation(pnfsrdma.READ, memory, turn * 4096)])
                self.assertEqual(queue.reap(1, 60)[0].result, 4096)
                self.assertEqual(bytes(memory), bytes([turn + 1]) * 4096)
        self.client.free(memory)

    def test_the_size_and_time_of_what_was_written_are_seen_by_stat(self):
        with self.client.open("file", os.O_RDWR | os.O_CREAT, 0o640) as file:
            path = pathlib.Path(self.source, "file")
            for length in (10, 100_000, MIB):
                file.pwrite(bytes(length), 0)
                self.assertEqual((path.stat().st_size, file.stat().size), (length, length))
            self.assertEqual(file.append(b"more"), MIB)
            self.assertEqual(path.stat().st_size, MIB + 4)
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o640)
            self.assertEqual(path.stat().st_uid, NOBODY)

    def test_appends_of_program_and_mount_lose_nothing(self):
        memory = self.client.alloc(3 * MIB)
        memory[:] = os.urandom(3 * MIB)
        path = pathlib.Path(self.source, "log")
        with self.client.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND) as file, open(path, "ab", buffering=0) as other:
            self.assertEqual(file.append(memory), 0)
            other.write(b"mount")
            self.assertEqual(file.append(bytes(memory)), 3 * MIB + 5)
            self.assertEqual(file.pwrite(b"library", 0), 7, "O_APPEND")
        self.assertTrue(path.read_bytes() == bytes(memory) + b"mount" + bytes(memory) + b"library")
        self.client.free(memory)

    def test_a_mount_that_dies_fails_what_is_under_way_within_seconds(self):
        memory = self.client.alloc(8 * 4096)
        file = self.client.open("file", os.O_RDWR | os.O_CREAT)
        file.pwrite(memory, 0)
        queue = self.client.queue(8)
        self.assert_written(queue, file, memory[:4096], 0)
        self.cluster.signal("brick", signal.SIGSTOP)
        self.addCleanup(self.cluster.signal, "brick", signal.SIGCONT)
        time.sleep(0.5)  # the signal reaches all of its threads
        queue.submit([file.operation(pnfsrdma.WRITE, memory[i * 4096:(i + 1) * 4096], i * 4096, 0, i) for i in range(8)])
        self.assertEqual(queue.reap(8, 0.2), [])
        self.through.process.send_signal(signal.SIGKILL)
        started = time.monotonic()
        done = []
        while len(done) < 8:
            done += queue.reap(8, 10)
            self.assertLess(time.monotonic() - started, 10)
        self.assertEqual({each.result for each in done}, {-errno.EIO})
        queue.submit([file.operation(pnfsrdma.READ, memory[:4096])])
        self.assertLess(queue.reap(1, 10)[0].result, 0)
        self.assertIn(self.failure(file.pread, 1, 0), (errno.ENOTCONN, errno.ECONNABORTED))
        self.assertIn(self.failure(self.client.open, "file"), (errno.ENOTCONN, errno.ECONNABORTED))
        with self.assertRaises(MemoryError):
            self.client.alloc(4096)
        queue.close()
        with contextlib.suppress(OSError):
            file.close()
        self.client.free(memory)
        self.client.close()
        self.through.kill()

    def failure(self, call, *arguments):
        with self.assertRaises(OSError) as caught:
            call(*arguments)
        return caught.exception.errno

    def test_an_unmount_waits_for_the_programs_files_only(self):
        self.client.alloc(4096)
        self.client.close()
        self.through.unmount()


if __name__ == "__main__":
    unittest.main()
