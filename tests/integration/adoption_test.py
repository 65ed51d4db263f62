#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The MDS is killed and started again: clients keep their layouts, and I/O under these goes on meanwhile.

usage: adoption_test.py BIN_DIRECTORY
"""
import multiprocessing
import mmap
import os
import re
import sys
import time
import unittest

from cluster import Cluster, OpenFile, wait_until

BIN = sys.argv.pop(1)
BLOCK = 4096
BLOCKS = 256
ROUNDS = 10
LEASE_SECONDS = 6  # so that the mount hears of each restart within two seconds


def content(block, generation):
    return b"%08d%08d" % (block, generation) * (BLOCK // 16)


class DirectIo:
    """A process that writes and reads one file by O_DIRECT, 4 KiB at a time, and looks at what it reads."""

    def __init__(self, path):
        self.stop = multiprocessing.Event()
        # I/O done; the slowest one, ms; of the last look
        self.done, self.slowest = multiprocessing.Value("Q", 0), multiprocessing.Value("d", 0)
        self.wrong, self.inside = multiprocessing.Pipe(duplex=False)
        self.process = multiprocessing.Process(target=self.run, args=(str(path),), daemon=True)
        self.process.start()
        wait_until(lambda: self.done.value > 4 * BLOCKS or self.wrong.poll(), 60, "direct I/O goes on")
        self.slowest.value = 0

    def run(self, path):
        try:
            self.work(os.open(path, os.O_RDWR | os.O_DIRECT))
        except BaseException as error:  # pylint: disable=broad-except
            self.inside.send(repr(error))

    def work(self, descriptor):
        memory = mmap.mmap(-1, BLOCK)
        generations = [0] * BLOCKS
        for turn in range(sys.maxsize):
            if self.stop.is_set():
                return os.close(descriptor)
            block = turn * 37 % BLOCKS
            begin = time.monotonic()
            if turn % 2 == 0:
                memory[:] = content(block, turn + 1)
                count = os.pwritev(descriptor, [memory], block * BLOCK)
                generations[block] = turn + 1
            else:
                block = turn * 11 % BLOCKS
                count = os.preadv(descriptor, [memory], block * BLOCK)
            taken = (time.monotonic() - begin) * 1000
            assert count == BLOCK, f"short: {count}"
            if turn % 2 == 1:
                assert memory[:] == content(block, generations[block]), f"block {block} is not what was written"
            self.slowest.value = max(self.slowest.value, taken)
            self.done.value += 1
        return None

    def end(self):
        self.stop.set()
        self.process.join(60)
        return self.wrong.recv() if self.wrong.poll() else None


class Adoption(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(BIN, pool_size="512M", lease_seconds=LEASE_SECONDS).start_all()
        self.mount = self.cluster.mount(name="a")
        self.path = self.mount / "file"
        self.path.write_bytes(b"".join(content(block, 0) for block in range(BLOCKS)))

    def tearDown(self):
        self.cluster.close()

    def sessions_opened(self):
        return self.cluster.log("brick").count("session-opened")

    def restart(self, end):
        end("mds")
        self.cluster.start_mds()
        wait_until(lambda: self.adoptions() or "brick-ready" in self.last_run(), 60, "the brick is ready")

    def last_run(self):
        return self.cluster.log("mds").rsplit("boot-opened", 1)[-1]

    def adoptions(self):
        """Of the last start: what became of the grants."""
        found = re.search(r"grants-adopted brick=1 sessions=(\d+) grants=(\d+) withdrawn=(\d+) layouts-void=(\d+)",
                          self.last_run())
        return tuple(map(int, found.groups())) if found else None

    def test_direct_io_goes_on_while_the_mds_is_killed_ten_times(self):
        other = self.cluster.mount(name="b")
        io = DirectIo(self.path)
        sessions, before = self.sessions_opened(), self.mount.statistics()
        io.slowest.value = 0
        for turn in range(ROUNDS):
            done = io.done.value
            self.restart(self.cluster.kill if turn % 2 == 0 else self.cluster.stop)
            sessions_kept, grants, withdrawn, void = self.adoptions()
            self.assertGreaterEqual(grants, 1)
            self.assertEqual((sessions_kept, withdrawn, void), (1, 0, 0))
            # The mount hears of it, and finds out which layouts the server still has.
            wait_until(lambda: self.mount.statistics()["mds_new_sessions"] > turn, 30, "the mount has a new session")
            wait_until(lambda: io.done.value > done or io.wrong.poll(), 30, "direct I/O goes on")
        after = self.mount.statistics()
        print(f"slowest of {io.done.value} I/Os of 4 KiB over {ROUNDS} restarts of the MDS: {io.slowest.value:.1f} ms")
        self.assertFalse(io.wrong.poll() and io.wrong.recv())
        self.assertLess(io.slowest.value, 1000)
        self.assertEqual(self.sessions_opened(), sessions)
        self.assertEqual(after["layouts_dropped"], before["layouts_dropped"])
        # Another one takes the file over: what was written is there, and the layout is recalled.
        self.assertIsNone(io.end())
        recalls = self.mount.statistics()["recalls"]
        os.truncate(other / "file", BLOCK)
        self.assertGreater(self.mount.statistics()["recalls"], recalls)
        self.assertEqual(os.stat(other / "file").st_size, BLOCK)
        os.unlink(other / "file")
        self.mount.unmount()
        other.unmount()

    def test_what_was_not_synced_is_committed_behind_a_restart(self):
        other = self.cluster.mount(name="b")
        f = OpenFile(self.mount / "grown")
        data = os.urandom(1 << 20)
        f.write(data[:BLOCK])
        f.fsync()
        f.write(data[BLOCK:], BLOCK)
        self.restart(self.cluster.kill)
        f.fsync()
        self.assertEqual((other / "grown").read_bytes(), data)
        f.close()

    def test_a_file_of_a_killed_mount_is_another_ones_after_its_lease(self):
        other = self.cluster.mount(name="b")
        io = DirectIo(self.path)
        io.end()
        f = OpenFile(self.path)
        f.write(b"A" * BLOCK)
        f.fsync()
        self.cluster.kill("mds")
        self.mount.kill()
        self.cluster.start_mds()
        with open(other / "file", "r+b", buffering=0) as theirs:
            self.assertEqual(theirs.read(BLOCK), b"A" * BLOCK)
            theirs.truncate(BLOCK)
        self.assertEqual(os.stat(other / "file").st_size, BLOCK)
        f.process.shutdown(wait=False)


if __name__ == "__main__":
    unittest.main(verbosity=2)
