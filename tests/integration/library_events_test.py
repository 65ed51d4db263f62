#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libpnfsrdma against the real daemons: signals of several writers, and several readers that watch them on other
connections, also while connections are cut and the brick dies. No event is lost without a gap, none comes too early.

usage: library_events_test.py BIN_DIRECTORY [--commits COUNT]      (1,000,000 take some minutes)
"""
import contextlib
import errno
import json
import os
import pathlib
import select
import subprocess
import sys
import time
import unittest

if "--commits" in sys.argv:
    at = sys.argv.index("--commits")
    os.environ["PNFSRDMA_TEST_COMMITS"] = sys.argv[at + 1]  # the program may start once more
    del sys.argv[at:at + 2]
COMMITS = int(os.environ.get("PNFSRDMA_TEST_COMMITS", 20_000))

from library_case import BIN, MIB, PRELOADED, Case  # see there
from cut_proxy import CutProxy
import cluster
import pnfsrdma

class Events(Case):
    one_cluster = True

    def tearDown(self):
        self.client.close()

    def made(self, size=MIB):
        file = self.client.open("watched", os.O_RDWR | os.O_CREAT)
        file.pwrite(bytes(size), 0)
        file.fsync()
        return file

    def test_an_event_says_where_and_what_and_comes_behind_the_data(self):
        with self.made() as file, pnfsrdma.connect(self.source) as other, other.open("watched") as theirs, theirs.watch(4096, 4096) as watch:
            self.assertIsNone(watch.next(0))
            self.assertEqual(select.select([watch], [], [], 0)[0], [])
            file.pwrite(b"new", 5000)
            file.signal(5000, 3, 17)
            self.assertEqual(select.select([watch], [], [], 5)[0], [watch])
            self.assertEqual(watch.next(5), pnfsrdma.Event(pnfsrdma.SIGNAL, 5000, 3, 17))
            self.assertEqual(theirs.pread(3, 5000), b"new")
            file.signal(0, 5000, 18)
            self.assertEqual(watch.next(5), pnfsrdma.Event(pnfsrdma.SIGNAL, 4096, 904, 18))
            file.signal(0, 4096, 19)
            file.signal(8192, 4096, 20)
            self.assertIsNone(watch.next(0.1))

    def test_what_has_grown_can_be_read_when_it_is_signalled(self):
        with self.made(4096) as file, pnfsrdma.connect(self.source) as other, other.open("watched") as theirs, theirs.watch(0, 4096) as watch:
            file.pwrite(b"x" * 100_000, 4096)
            file.signal(4000, 100_096, 1)
            self.assertEqual(watch.next(5), pnfsrdma.Event(pnfsrdma.SIGNAL, 4000, 96, 1))
            self.assertEqual(theirs.pread(100_000, 4096), b"x" * 100_000)
            with theirs.watch(90_000, 10) as behind:
                file.signal(0, 100_000, 2)
                self.assertEqual(behind.next(5), pnfsrdma.Event(pnfsrdma.SIGNAL, 90_000, 10, 2))

    def test_who_may_not_read_or_write_neither_watches_nor_signals(self):
        with self.made():
            pass
        with self.client.open("watched", os.O_WRONLY) as file:
            self.assert_fails(errno.EBADF, file.watch, 0, 8)
            file.signal(0, 8, 1)
        with self.client.open("watched", os.O_RDONLY) as file:
            self.assert_fails(errno.EBADF, file.signal, 0, 8, 1)
            self.assert_fails(errno.EINVAL, file.watch, MIB, 1)
            self.assert_fails(errno.EINVAL, file.watch, 0, 0)
            with file.watch(0, 8):
                self.assertIn("watches", self.assert_fails(errno.EBUSY, pnfsrdma._check, pnfsrdma._library.pnfsrdma_close(file._pointer)))

    def test_a_file_that_is_cut_is_a_gap_and_watched_again_when_there_is_memory(self):
        with self.made() as file, pnfsrdma.connect(self.source) as other, other.open("watched") as theirs, theirs.watch(0, MIB) as watch:
            file.truncate(0)
            self.assertTrue(watch.next(10).is_gap)
            file.pwrite(b"again", 0)
            file.truncate(MIB)
            file.signal(0, 5, 1)
            deadline = time.monotonic() + 20
            while theirs.pread(5, 0) != b"again":
                self.assertTrue(watch.next(deadline - time.monotonic()))
            self.settle(watch, file)

    def test_a_hole_that_is_filled_is_an_event_or_a_gap(self):
        with self.client.open("sparse", os.O_RDWR | os.O_CREAT) as file:
            file.truncate(16 * MIB)
            with pnfsrdma.connect(self.source) as other, other.open("sparse") as theirs, theirs.watch(0, 16 * MIB) as watch:
                self.assertEqual(theirs.pread(4, 9 * MIB), bytes(4))
                for at in (9 * MIB, 3 * MIB + 5, 15 * MIB):
                    file.pwrite(b"full", at)
                    file.signal(at, 4, at)
                    self.assertIsNotNone(watch.next(10), f"something is told of {at}")
                    while theirs.pread(4, at) != b"full":
                        self.assertIsNotNone(watch.next(10), at)
                    while watch.next(2.5) is not None:  # what the other gaps tell, not to be taken for the next one's
                        pass

    def settle(self, watch, file):
        """All of it is watched again: signals are heard."""
        deadline = time.monotonic() + 20
        for value in range(100, 1000):
            file.signal(0, 5, value)
            while (event := watch.next(0.2)) is not None:
                if event.value == value:
                    return
            self.assertLess(time.monotonic(), deadline)

    def test_the_example_has_in_each_process_what_another_one_has_set(self):
        cache = [str(BIN.parent / "examples" / "cache"), self.source, "cache"]
        user = {"user": os.geteuid(), "group": os.getegid()}
        self.assertEqual(subprocess.run([*cache, "set", "first", "one"], timeout=60, check=False, **user).returncode, 0)
        followers = [subprocess.Popen([*cache, "follow", "1000"], stdout=subprocess.PIPE, text=True, **user) for _ in range(2)]
        for follower in followers:
            for end in (follower.wait, follower.stdout.close, follower.kill):
                self.addCleanup(end)
            self.assertEqual(follower.stdout.readline(), "following\n")
        for turn in range(20):
            both = [subprocess.Popen([*cache, "set", key, str(turn)], **user) for key in ("some", "other")]
            self.assertEqual([each.wait(timeout=60) for each in both], [0, 0])
        for follower in followers:
            told = {"some": [-1], "other": [-1]}
            while min(turns[-1] for turns in told.values()) < 19:
                key, value = follower.stdout.readline().split()
                told[key].append(int(value))
            for turns in told.values():
                self.assertEqual(turns, sorted(set(turns)), "each once and in order; one may have come over another")
            follower.kill()
            follower.wait()
        for key, value in (("some", "19"), ("first", "one")):
            self.assertEqual(self.run_program(*cache, "get", key).stdout, value + "\n")
        self.assertEqual(self.run_program(*cache, "get", "nothing").returncode, 1)
        self.crash_while_it_sets(cache)

    def crash_while_it_sets(self, cache):
        """Who has crashed with the lock of a slot is waited for a while, and then the next one sets."""
        slot = pnfsrdma.crc32c(b"some") % 1024
        with self.client.open("cache", os.O_RDWR) as file:
            file.fetch_and_add(slot * 512, 1)
        self.assertEqual(self.run_program(*cache, "set", "some", "again").stderr, "")
        self.assertEqual(self.run_program(*cache, "get", "some").stdout, "again\n")
        with self.client.open("cache", os.O_RDWR) as file:
            first, second = (int.from_bytes(file.pread(8, slot * 512 + 16 + at), "little") for at in (0, 248))
            self.assertNotEqual(first, second)
            file.pwrite_durable(b"half of an entry", slot * 512 + 16 + (0 if first < second else 248) + 8)
        self.assertEqual(self.run_program(*cache, "get", "some").stdout, "again\n", "what was set before the crash")

    def test_a_slow_reader_gets_a_gap_and_slows_nobody(self):
        with self.made() as file, pnfsrdma.connect(self.source) as other, other.open("watched") as theirs:
            with theirs.watch(0, 8) as slow, theirs.watch(0, 8) as quick:
                count = 3000
                taken = 0
                for value in range(1, count + 1):
                    file.signal(0, 8, value)
                    while (event := quick.next(0)) is not None:
                        taken = max(taken, event.value)
                while taken < count:
                    event = quick.next(5)
                    self.assertIsNotNone(event)
                    taken = max(taken, event.value)
                # A mount sends on what it has kept, the gap among it, as the reader reads: not all is there at once.
                events = [slow.next(5)]
                while events[-1] is not None and events[-1].kind != pnfsrdma.GAP_SLOW:
                    events.append(slow.next(5))
                self.assertIsNotNone(events[-1], f"no gap behind {len(events) - 1} events")
                self.assertLess(len(events), count)
                file.signal(0, 8, 7777)
                while (event := slow.next(5)) is not None and event.value != 7777:
                    pass
                self.assertIsNotNone(event)


class ThroughAMount(Events):
    """The same, where both connections are those of programs of one mount."""

    def reach(self):
        self.server = super().reach()
        self.mount = self.cluster.mount()
        return str(self.mount.path)

    def tearDown(self):
        super().tearDown()
        if self.mount.process.poll() is None:
            self.mount.unmount()

    def test_programs_of_the_mount_and_others_hear_each_other(self):
        with self.made() as file, pnfsrdma.connect(self.server) as other, other.open("watched", os.O_RDWR) as theirs:
            with file.watch(0, 64) as here, theirs.watch(0, 64) as there:
                file.pwrite(b"here", 0)
                file.signal(0, 4, 1)
                self.assertEqual([here.next(5).value, there.next(5).value], [1, 1])
                self.assertEqual(theirs.pread(4, 0), b"here")
                theirs.pwrite(b"away", 0)
                theirs.signal(0, 4, 2)
                self.assertEqual([here.next(5).value, there.next(5).value], [2, 2])
                self.assertEqual(file.pread(4, 0), b"away")

    def test_what_the_kernel_has_written_for_a_program_can_be_signalled(self):
        with self.made() as file, file.watch(0, 64) as watch:
            (self.mount / "watched").write_bytes(b"by write(2)" + bytes(1000))
            self.drain(watch)
            file.signal(0, 11, 9)
            while watch.next(5).value != 9:
                pass
            self.assertEqual(file.pread(11, 0), b"by write(2)")

    def drain(self, watch):
        while watch.next(0.5) is not None:
            pass

    def test_one_user_cannot_take_all_watches(self):
        with self.made() as file:
            watches = []
            with self.assertRaises(OSError) as caught:
                for _ in range(300):
                    watches.append(file.watch(0, 8))
            self.assertEqual(caught.exception.errno, errno.ENOSPC)
            self.assertEqual(len(watches), 192)
            file.signal(0, 8, 1)
            self.assertEqual([watch.next(5).value for watch in watches], [1] * len(watches))
            for watch in watches[:100]:
                watch.close()
            cluster.wait_until(lambda: self.can_watch(file), 10, "the mount has forgotten them")
            for watch in watches[100:]:
                watch.close()

    def can_watch(self, file):
        try:
            file.watch(0, 8).close()
            return True
        except OSError:
            return False

    def test_a_program_that_dies_leaves_nothing_behind(self):
        self.made().close()
        program = ("import os, sys, pnfsrdma\nclient = pnfsrdma.connect(sys.argv[1])\nfile = client.open('watched')\n"
                   "watches = [file.watch(0, 8) for _ in range(150)]\nos.kill(os.getpid(), 9)\n")
        environment = {**os.environ, "LD_PRELOAD": PRELOADED, "PYTHONPATH": str(pathlib.Path(pnfsrdma.__file__).parent)}
        for _ in range(3):
            result = subprocess.run([sys.executable, "-B", "-c", program, self.source], env=environment, check=False)
            self.assertEqual(result.returncode, -9)
        with self.client.open("watched", os.O_RDWR) as file, file.watch(0, 8) as watch:
            file.signal(0, 8, 3)
            self.assertEqual(watch.next(5).value, 3)

    def test_a_mount_that_ends_is_told(self):
        file = self.made()
        watch = file.watch(0, 8)
        self.mount.kill()
        with self.assertRaises(OSError) as caught:
            while watch.next(10) is not None:
                pass
        self.assertEqual(caught.exception.errno, errno.EIO)
        watch.close()
        with contextlib.suppress(OSError):
            file.close()


class Reader:
    """A process that watches the words of all writers: what it has seen of each never stands behind what it was told."""

    def __init__(self, source, writers, last):
        self.client = pnfsrdma.connect(source)
        self.file = self.client.open("shared")
        self.writers, self.last = int(writers), int(last)
        self.seen = [0] * self.writers
        self.events = self.gaps = self.early = self.lost = 0
        self.latencies = []
        self.memory = self.client.alloc(16)
        self.watch = self.file.watch(0, self.writers * 4096)

    def look(self, writer):
        """What is there, and when it was written."""
        while True:
            try:
                self.file.preadinto(self.memory, writer * 4096)
                return int.from_bytes(self.memory[:8], "little"), int.from_bytes(self.memory[8:], "little")
            except OSError:  # the brick is not there just now
                time.sleep(0.05)

    def look_at_all(self):
        self.seen = [self.look(writer)[0] for writer in range(self.writers)]

    def run(self):
        self.look_at_all()
        print("watches", flush=True)
        while min(self.seen) < self.last:
            event = self.watch.next(60)
            if event is None:
                self.lost += 1
                break
            self.take(event, time.monotonic_ns())
        self.latencies.sort()
        quantile = [self.latencies[int(len(self.latencies) * share)] / 1000 for share in (0.5, 0.99)] if self.latencies else []
        print(json.dumps({"events": self.events, "gaps": self.gaps, "early": self.early, "lost": self.lost, "us": quantile}))
        self.watch.close()
        self.file.close()
        self.client.close()

    def take(self, event, now):
        if event.is_gap:
            self.gaps += 1
            self.look_at_all()
            return
        self.events += 1
        writer = event.offset // 4096
        self.lost += event.value > self.seen[writer] + 1  # each signal has the next number
        value, written = self.look(writer)
        self.early += value < event.value
        if value == event.value and event.value > self.seen[writer]:
            self.latencies.append(now - written)
        self.seen[writer] = max(self.seen[writer], event.value)


def write(source, number, count, pause):
    """A process that commits one number after the other, each until it has succeeded."""
    repeated = 0
    with pnfsrdma.connect(source) as client, client.open("shared", os.O_RDWR) as file:
        memory, at = client.alloc(16), int(number) * 4096
        for value in range(1, int(count) + 1):
            while True:
                try:
                    memory[:] = value.to_bytes(8, "little") + time.monotonic_ns().to_bytes(8, "little")
                    file.pwrite(memory, at)
                    file.signal(at, 16, value)
                    time.sleep(float(pause))
                    break
                except OSError:
                    repeated += 1
                    time.sleep(0.02)
    print(repeated)


class Commits(unittest.TestCase):
    """Two writers and three readers, on connections of their own."""
    options = {"pool_size": "256M"}
    WRITERS, READERS = 2, 3

    def begin(self, through_proxy):
        self.cluster = cluster.Cluster(BIN, **self.options)
        self.addCleanup(self.cluster.close)
        if through_proxy:
            self.proxy = CutProxy(self.cluster.data_port, 0)
            self.addCleanup(self.proxy.close)
            config = json.loads((self.cluster.home / "brick.json").read_text())
            config["data"]["advertise"] = [f"127.0.0.1:{self.proxy.port}"]
            self.cluster.write_config("brick", config)
        self.cluster.start_all()
        cluster.wait_until(lambda: "brick-ready" in self.cluster.log("mds"), 30, "the MDS has the brick")
        self.source = f"127.0.0.1:{self.cluster.nfs_port}:/"

    def start(self, *role):
        environment = {**os.environ, "LD_PRELOAD": PRELOADED, "ASAN_OPTIONS": "detect_leaks=0"}
        process = subprocess.Popen([sys.executable, "-B", __file__, str(BIN), *map(str, role)], stdout=subprocess.PIPE, text=True,
                                   env=environment)
        for end in (process.stdout.close, process.wait, process.kill):
            self.addCleanup(end)
        return process

    def commit(self, commits, disturb=lambda disturbances: 0, pause=0.0, every=0.1):
        each = commits // self.WRITERS
        with pnfsrdma.connect(self.source) as client, client.open("shared", os.O_RDWR | os.O_CREAT) as file:
            file.pwrite(bytes(self.WRITERS * 4096), 0)
            file.fsync()
        readers = [self.start("read", self.source, self.WRITERS, each) for _ in range(self.READERS)]
        for reader in readers:
            self.assertEqual(reader.stdout.readline(), "watches\n")
        begun = time.monotonic()
        writers = [self.start("write", self.source, number, each, pause) for number in range(self.WRITERS)]
        disturbances = 0
        while any(writer.poll() is None for writer in writers):
            time.sleep(every)
            disturbances += disturb(disturbances)
        seconds = time.monotonic() - begun
        repeated = sum(int(writer.stdout.read()) for writer in writers)
        told = [json.loads(reader.stdout.read()) for reader in readers]
        print(f"{each * self.WRITERS} commits in {seconds:.1f} s, {disturbances} disturbances, {repeated} repeated by the writers; each reader: "
              f"{told} (us: from before the write to the wake-up, p50 and p99)", flush=True)
        self.assertEqual([(each["lost"], each["early"]) for each in told], [(0, 0)] * self.READERS)
        self.assertGreater(min(each["events"] for each in told), 0)
        return told

    def test_nothing_is_lost_or_early_on_a_quiet_day(self):
        self.begin(through_proxy=False)
        self.commit(COMMITS // 2)
        self.commit(500, pause=0.002)  # readers are asleep when it comes

    def test_nothing_is_lost_or_early_while_connections_are_cut_and_the_brick_is_killed(self):
        self.begin(through_proxy=True)

        def disturb(disturbances):
            if disturbances % 4 == 3:
                self.cluster.kill("brick")
                self.cluster.start_brick()
            else:
                self.proxy.cut()
            return 1
        told = self.commit(COMMITS // 4, disturb, every=1.0)
        self.assertGreater(min(each["gaps"] for each in told), 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        Reader(*sys.argv[2:]).run()
    elif sys.argv[1:2] == ["write"]:
        write(*sys.argv[2:])
    else:
        unittest.main()
