#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libpnfsrdma against the real daemons: many operations at once, and a file as memory.

usage: library_queue_test.py BIN_DIRECTORY
"""
import errno
import os
import pathlib
import select
import signal
import threading
import time
import unittest

from library_case import BIN, MIB, Case  # first: see there
import pnfsrdma


class Queues(Case):
    one_cluster = True

    def tearDown(self):
        self.client.close()

    def test_many_operations_at_once(self):
        memory = self.client.alloc(64 * 4096)
        with self.client.open("file", os.O_RDWR | os.O_CREAT) as file, self.client.queue(64) as queue:
            pieces = [memory[i * 4096:(i + 1) * 4096] for i in range(64)]
            content = os.urandom(64 * 4096)
            memory[:] = content
            writes = [file.operation(pnfsrdma.WRITE, piece, i * 4096, pnfsrdma.DURABLE, i) for i, piece in enumerate(pieces)]
            self.assertEqual(queue.submit(writes), 64)
            self.assert_fails(errno.EAGAIN, queue.submit, writes[:1])
            self.assertEqual(self.reap(queue, 64), {i: 4096 for i in range(64)})
            memory[:] = bytes(64 * 4096)
            reads = [file.operation(pnfsrdma.READ, piece, i * 4096, 0, i) for i, piece in enumerate(pieces)]
            for _ in range(5):
                self.assertEqual(queue.submit(reads), 64)
                self.assertEqual(self.reap(queue, 64), {i: 4096 for i in range(64)})
                self.assertTrue(memory == content)
            queue.submit([file.operation(pnfsrdma.FSYNC, user_data=7), file.operation(pnfsrdma.READ, pieces[0], 1 << 40, 0, 8)])
            self.assertEqual(self.reap(queue, 2), {7: 0, 8: 0})
            self.assert_fails(errno.EINVAL, queue.submit, [file.operation(99)])
        self.client.free(memory)

    def reap(self, queue, count):
        """By poll(2), as a program with a loop of its own does."""
        done = {}
        deadline = time.monotonic() + 60
        while len(done) < count:
            ready, _, _ = select.select([queue], [], [], deadline - time.monotonic())
            self.assertTrue(ready, f"{len(done)} of {count}")
            for completion in queue.reap(64, 0):
                done[completion.user_data] = completion.result
        self.assertEqual(queue.reap(1, 0), [])
        return done

    def test_appends_say_where_they_went(self):
        memory = bytearray(b"0123456789" * 8)
        view = memoryview(memory)
        with self.client.open("log", os.O_RDWR | os.O_CREAT) as file, self.client.queue(8) as queue:
            queue.submit([file.operation(pnfsrdma.APPEND, view[i * 10:(i + 1) * 10], 0, 0, i) for i in range(8)])
            places = []
            while len(places) < 8:
                places += [completion.offset for completion in queue.reap(8)]
            self.assertEqual(sorted(places), list(range(0, 80, 10)))
            self.assertEqual(file.pread(100, 0), b"0123456789" * 8)

    def test_errors_are_those_of_each_operation(self):
        memory = bytearray(10)
        with self.client.open("file", os.O_WRONLY | os.O_CREAT) as file, self.client.queue(8) as queue:
            queue.submit([file.operation(pnfsrdma.READ, memory, 0, 0, 1), file.operation(pnfsrdma.WRITE, memory, 0, 0, 2)])
            done = {}
            while len(done) < 2:
                done |= {completion.user_data: completion.result for completion in queue.reap(8)}
            self.assertEqual(done, {1: -errno.EBADF, 2: 10})

    def test_words_verification_and_signals_are_operations_too(self):
        content = os.urandom(64 * 4096)
        with self.client.open("file", os.O_RDWR | os.O_CREAT) as file, self.client.queue(16) as queue:
            file.pwrite(bytes(4096) + content, 0)
            file.fsync()
            added = [file.word_operation(pnfsrdma.FETCH_AND_ADD, 64, 5, flags=pnfsrdma.DURABLE, user_data=i) for i in range(8)]
            self.assertEqual(queue.submit(added), 8)
            self.assertEqual(self.reap(queue, 8), {i: 0 for i in range(8)})
            self.assertEqual(sorted(each.word.old for each in added), [5 * i for i in range(8)], "each once, one behind the other")
            swaps = [file.word_operation(pnfsrdma.COMPARE_AND_SWAP, 64, 7, expected, user_data=expected) for expected in (40, 41)]
            queue.submit([swaps[0]])
            self.assertEqual(self.reap(queue, 1), {40: 1})
            queue.submit([swaps[1], file.word_operation(pnfsrdma.ATOMIC_WRITE, 72, (1 << 64) - 1, user_data=1)])
            self.assertEqual(self.reap(queue, 2), {41: 0, 1: 0})
            self.assertEqual([each.word.old for each in swaps], [40, 7])
            self.assertEqual(file.pread(16, 64), (7).to_bytes(8, "little") + b"\xff" * 8)

            ranges = [(4096 + i * 4096, 4096) for i in range(64)]
            sums = [pnfsrdma.crc32c(content[i * 4096:(i + 1) * 4096]) for i in range(64)]
            right = file.verify_operation(ranges, sums, 1)
            wrong = file.verify_operation(ranges, [*sums[:63], sums[63] ^ 1], 2)
            queue.submit([right, wrong, file.verify_operation([], None, 3), file.verify_operation([(1 << 30, 1)], None, 4)])
            self.assertEqual(self.reap(queue, 4), {1: 0, 2: -errno.EBADMSG, 3: 1, 4: -errno.EINVAL})
            self.assertEqual((list(right.found), list(wrong.found)), (sums, sums))

            with file.watch(0, 4096) as watch:
                queue.submit([file.signal_operation(64, 16, 1 << 63, 1), file.signal_operation(1 << 40, 8, 0, 2)])
                self.assertEqual(self.reap(queue, 2), {1: 0, 2: -errno.EINVAL})
                self.assertEqual(watch.next(10), pnfsrdma.Event(pnfsrdma.SIGNAL, 64, 16, 1 << 63))
            queue.submit([file.word_operation(pnfsrdma.FETCH_AND_ADD, 65, 1, user_data=1), file.word_operation(pnfsrdma.FETCH_AND_ADD, 1 << 62, 1, user_data=2)])
            self.assertEqual(self.reap(queue, 2), {1: -errno.EINVAL, 2: -errno.EINVAL})
            short = file.word_operation(pnfsrdma.ATOMIC_WRITE, 64, 1)
            short.length = 16
            nothing = file.signal_operation(0, 8, 1)
            nothing.buffer = None
            for operation in (short, nothing, file.operation(10)):
                self.assert_fails(errno.EINVAL, queue.submit, [operation])
        with self.client.open("file") as file, self.client.queue(3) as queue:
            queue.submit([file.word_operation(pnfsrdma.FETCH_AND_ADD, 64, 1, user_data=1), file.signal_operation(0, 8, 1, 2),
                          file.verify_operation([(4096, 4096)], sums[:1], 3)])
            self.assertEqual(self.reap(queue, 3), {1: -errno.EBADF, 2: -errno.EBADF, 3: 0})

    def test_threads_that_submit_and_reap_beside_threads_that_wait(self):
        done = self.run_program(BIN / "library_stress", self.source, "5")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater(int(done.stdout), 1000)

    def test_the_threads_of_the_library_block_all_signals(self):
        memory = self.client.alloc(4096)
        with self.client.open("file", os.O_RDWR | os.O_CREAT) as file, self.client.queue(8) as queue:
            file.pwrite(memory, 0)
            file.fsync()
            queue.submit([file.operation(pnfsrdma.READ, memory), file.operation(pnfsrdma.APPEND, memory)])
            self.assertEqual(len(queue.reap(1) + queue.reap(1)), 2)
            open_to = [task for task in os.listdir("/proc/self/task") if int(task) != os.getpid()
                       and "SigBlk:\tfffffff" not in pathlib.Path(f"/proc/self/task/{task}/status").read_text()]
            self.assertEqual(open_to, [])
        self.client.free(memory)

    def test_who_waits_for_nothing_is_not_woken_by_what_others_read(self):
        memory = self.client.alloc(4096)
        with self.client.open("file", os.O_RDWR | os.O_CREAT) as file, self.client.queue(1) as queue:
            file.pwrite(memory, 0)
            queue.submit([file.operation(pnfsrdma.READ, memory)])
            queue.reap(1)
            woken = []

            def wait():
                status = pathlib.Path(f"/proc/self/task/{threading.get_native_id()}/status")
                before = int(status.read_text().split("voluntary_ctxt_switches:")[1].split()[0])
                queue.reap(1, 2)
                woken.append(int(status.read_text().split("voluntary_ctxt_switches:")[1].split()[0]) - before)
            waiter = threading.Thread(target=wait)
            waiter.start()
            reads = 0
            while waiter.is_alive():
                file.preadinto(memory, 0)
                reads += 1
            waiter.join()
            self.assertGreater(reads, 300)
            self.assertLess(woken[0], 100, f"{reads} reads")
        self.client.free(memory)

    def test_a_file_of_another_connection_is_refused(self):
        with pnfsrdma.connect(self.source) as other, other.open("file", os.O_RDWR | os.O_CREAT) as file, self.client.queue(1) as queue:
            self.assert_fails(errno.EINVAL, queue.submit, [file.operation(pnfsrdma.READ, bytearray(10))])

    def test_python_keeps_the_memory_of_what_is_under_way(self):
        memory = bytearray(4096)
        with self.client.open("file", os.O_RDWR | os.O_CREAT) as file, self.client.queue(1) as queue:
            file.pwrite(b"x" * 4096, 0)
            self.cluster.signal("brick", signal.SIGSTOP)
            try:
                queue.submit([file.operation(pnfsrdma.READ, memory)])
                with self.assertRaises(BufferError):
                    memory.extend(bytes(100_000))
            finally:
                self.cluster.signal("brick", signal.SIGCONT)
            self.assertEqual(queue.reap(1)[0].result, 4096)
            memory.extend(b"free again")
            self.assertEqual(memory[:4096], b"x" * 4096)

    def test_a_queue_that_is_destroyed_waits(self):
        memory = bytearray(MIB)
        with self.client.open("file", os.O_WRONLY | os.O_CREAT) as file:
            queue = self.client.queue(16)
            queue.submit([file.operation(pnfsrdma.WRITE, memory, i * MIB) for i in range(16)])
            self.assert_fails(errno.EBUSY, self.busy_close, file)
            queue.close()
            self.assertEqual(file.stat().size, 16 * MIB)

    def busy_close(self, file):
        copy = pnfsrdma.File(file._pointer)
        copy.close()


class Maps(Case):
    one_cluster = True

    def setUp(self):
        super().setUp()
        self.mount = self.cluster.mount("actimeo=0")

    def tearDown(self):
        self.client.close()
        self.mount.unmount()

    def test_what_is_declared_is_written_and_nothing_else(self):
        content = os.urandom(3 * MIB)
        (self.mount / "file").write_bytes(content)
        with self.client.open("file", os.O_RDWR) as file, file.map(4096, 2 * MIB) as image:
            self.assertTrue(image.memory == content[4096:4096 + 2 * MIB])
            wanted = bytearray(content)
            image.memory[:] = b"\xff" * (2 * MIB)
            ranges = [(i * 10_000, 64) for i in range(200)] + [(MIB, 0), (2 * MIB - 1, 1)]
            image.sync(ranges)
            for offset, length in ranges:
                wanted[4096 + offset:4096 + offset + length] = b"\xff" * length
            file.fsync()  # the mount's page cache learns of it with the modification time
            self.assertTrue((self.mount / "file").read_bytes() == wanted)
            image.refresh([(0, 100)])
            self.assertTrue(image.memory[:100] == wanted[4096:4196])
            self.assertEqual(bytes(image.memory[100:200]), b"\xff" * 100, "stored, and neither synced nor refreshed")
            image.refresh()
            self.assertTrue(image.memory == wanted[4096:4096 + 2 * MIB])
            for wrong in ([(2 * MIB, 1)], [(0, 2 * MIB + 1)], [(1 << 63, 1 << 63)]):
                self.assert_fails(errno.EINVAL, image.sync, wrong)

    def test_what_others_write_is_seen_after_a_refresh_and_not_before(self):
        (self.mount / "file").write_bytes(bytes(8192))
        with self.client.open("file") as file, file.map(0, 8192) as image:
            with open(self.mount / "file", "r+b", buffering=0) as other:
                other.write(b"changed")
                os.fsync(other.fileno())
            self.assertEqual(bytes(image.memory[:7]), bytes(7))
            image.refresh([(0, 4096)])
            self.assertEqual(bytes(image.memory[:7]), b"changed")
            self.assert_fails(errno.EBADF, image.sync)

    def test_behind_the_end_it_is_zeros_and_the_file_grows_as_far_as_it_is_synced(self):
        (self.mount / "file").write_bytes(b"x" * 100)
        with self.client.open("file", os.O_RDWR) as file:
            with file.map(50, 3 * MIB) as image:
                self.assert_fails(errno.EBUSY, self.busy_close, file)
                self.assertEqual(bytes(image.memory), b"x" * 50 + bytes(3 * MIB - 50))
                image.memory[MIB:MIB + 5] = b"grown"
                image.sync([(MIB, 5)])
                self.assertEqual(file.stat().size, 50 + MIB + 5)
                self.assertTrue((self.mount / "file").read_bytes() == b"x" * 100 + bytes(MIB - 50) + b"grown")
            self.assert_fails(errno.EINVAL, file.map, 0, 0)
        with self.client.open("file", os.O_WRONLY) as file:
            self.assert_fails(errno.EACCES, file.map, 0, 10)

    def busy_close(self, file):
        pnfsrdma.File(file._pointer).close()


class SeveralBricks(Case):
    options = {"bricks": 3, "pool_size": "128M"}

    def test_a_file_that_lies_on_several_is_written_and_read_in_one_operation(self):
        size = 320 * MIB
        memory = self.client.alloc(8 * MIB)
        memory[:] = os.urandom(8 * MIB)
        with self.client.open("file", os.O_RDWR | os.O_CREAT) as file, self.client.queue(4) as queue:
            for at in range(0, size, 8 * MIB):
                file.pwrite(memory, at)
            file.fsync()
            expected = bytes(memory)
            for at in range(2 * MIB, size - 8 * MIB, 8 * MIB):  # some of them cross from brick to brick
                queue.submit([file.operation(pnfsrdma.READ, memory, at)])
                self.assertEqual(queue.reap(1)[0].result, 8 * MIB)
                self.assertTrue(memory == expected[2 * MIB:] + expected[:2 * MIB], at)
            memory[:] = expected
            queue.submit([file.operation(pnfsrdma.WRITE, memory, at, pnfsrdma.DURABLE) for at in (116 * MIB, 244 * MIB)])
            self.assertEqual([each.result for each in queue.reap(1) + queue.reap(1)], [8 * MIB] * 2)
            for at in (116 * MIB, 244 * MIB):
                self.assertTrue(file.pread(8 * MIB, at) == expected)
        self.client.free(memory)
        self.client.close()


if __name__ == "__main__":
    unittest.main()
