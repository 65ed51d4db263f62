#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In the steady state (layout held, file allocated, O_DIRECT) data goes by RDMA and costs no MDS call.

usage: steady_state_test.py BIN_DIRECTORY
"""
import collections
import json
import mmap
import os
import random
import statistics
import sys
import time
import unittest

from cluster import Cluster
from delay_proxy import DelayProxy, round_trips

BIN = sys.argv.pop(1)
MIB = 1 << 20
SIZE = 1024 * MIB


def aligned(size, byte=0):
    buffer = mmap.mmap(-1, size)
    if byte:
        buffer.write(bytes([byte]) * size)
    return buffer


def flushes(mount):
    """Flushes the brick has answered, by whatever method went straight to it."""
    counts = mount.statistics()
    return counts["flushes_native"] + counts["flushes_commit_message"]


class SteadyState(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="3G").start_all()
        cls.mount = cls.cluster.mount("flush_after=0,layoutstats_timer=0")  # nothing flushed in the background beside what is counted
        cls.file = os.open(cls.mount / "big", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
        cls.block = aligned(MIB, 0xA5)
        for i in range(SIZE // MIB):
            cls.block[0:8] = i.to_bytes(8, "big")
            os.pwrite(cls.file, cls.block, i * MIB)
        os.fsync(cls.file)
        # Touch it once for reading: the layout is held from here on.
        os.preadv(cls.file, [aligned(4096)], 0)

    @classmethod
    def tearDownClass(cls):
        os.close(cls.file)
        cls.mount.unmount()
        cls.cluster.close()

    def measure(self, work):
        self.mount.wait_until_quiet()
        before, served_before = self.mount.statistics(), self.cluster.mds_counters()
        work()
        after, served_after = self.mount.statistics(), self.cluster.mds_counters()
        self.assertEqual(after["mds_calls"] - before["mds_calls"], 0,
                         f"MDS calls as the client counts them: {before['mds_operations']}, {after['mds_operations']}")
        # SEQUENCE alone (lease renewal) is not a call on behalf of I/O: what the MDS counts is every other operation.
        self.assertEqual(served_after["read_bytes"] + served_after["write_bytes"],
                         served_before["read_bytes"] + served_before["write_bytes"])
        return {key: after[key] - before[key] for key in ("rdma_read_bytes", "rdma_write_bytes")}

    def test_a_gibibyte_written_in_sequence(self):
        def work():
            for i in range(SIZE // MIB):
                self.block[0:8] = i.to_bytes(8, "big")
                os.pwrite(self.file, self.block, i * MIB)
        self.assertEqual(self.measure(work)["rdma_write_bytes"], SIZE)

    def test_a_gibibyte_read_in_sequence(self):
        buffer = aligned(MIB)

        def work():
            for i in range(SIZE // MIB):
                self.assertEqual(os.preadv(self.file, [buffer], i * MIB), MIB)
                self.assertEqual(int.from_bytes(buffer[0:8], "big"), i)
        self.assertEqual(self.measure(work)["rdma_read_bytes"], SIZE)

    def test_a_hundred_thousand_random_reads(self):
        buffer, chance = aligned(4096), random.Random(7)

        def work():
            for _ in range(100_000):
                os.preadv(self.file, [buffer], chance.randrange(SIZE // 4096) * 4096)
        self.assertEqual(self.measure(work)["rdma_read_bytes"], 100_000 * 4096)

    def test_fdatasync_of_an_overwrite_calls_no_mds(self):
        def work():
            for i in range(100):
                os.pwrite(self.file, self.block, i * MIB)
                os.fdatasync(self.file)
        before = flushes(self.mount)
        self.measure(work)
        self.assertEqual(flushes(self.mount) - before, 100)


    def test_direct_writes_that_are_to_be_synchronous_are_flushed_each(self):
        os.fsync(self.file)  # or a close flushes what another test has written
        for flags in (os.O_DSYNC, os.O_SYNC):
            file = os.open(self.mount / "big", os.O_RDWR | os.O_DIRECT | flags)
            before = flushes(self.mount)
            for i in range(50):
                os.pwrite(file, self.block, i * MIB)
            os.close(file)
            self.assertEqual(flushes(self.mount) - before, 50)


class OneRoundTrip(unittest.TestCase):
    """A sync of an overwrite waits for one round trip, and so does an overwrite that is to be synchronous: counted on the
    wire, where each takes 10 ms."""
    ONE_WAY = 0.005

    def test_a_write_and_its_sync_wait_once(self):
        events = []
        with Cluster(BIN, pool_size="256M", insecure=True) as cluster:
            # The brick advertises the proxy's port, so that the client's data connection goes through it.
            data_proxy = DelayProxy(cluster.data_port, self.ONE_WAY, events)
            config = json.loads((cluster.home / "brick.json").read_text())
            config["data"]["advertise"] = [f"127.0.0.1:{data_proxy.port}"]
            cluster.write_config("brick", config)
            cluster.start_all()
            mds_proxy = DelayProxy(cluster.nfs_port, self.ONE_WAY, events)
            mount = cluster.mount(port=mds_proxy.port)
            file = os.open(mount / "file", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
            block = aligned(4096, 1)
            for i in range(64):
                os.pwrite(file, block, i * 4096)
            os.fsync(file)
            calls = mount.statistics()["mds_calls"]
            # After some of these each write takes its flush along. Two writes in a row end that.
            self.assertEqual(self.trips(events, file, os.fdatasync, range(64)), (1, 0))
            self.assertEqual(mount.statistics()["mds_calls"] - calls, 0)
            self.assertEqual(self.trips(events, file, os.fsync, range(64)), (1, 0))
            self.assertEqual(self.trips(events, file, os.fdatasync, range(64), twice=True), (1, 1))
            self.assertEqual(self.trips(events, file, os.fsync, range(64), twice=True), (1, 1))
            # A size may be told only when the bytes in front of it are durable.
            self.assertEqual(self.trips(events, file, os.fdatasync, range(64, 128)), (1, 1))
            os.close(file)
            for name in ("O_DSYNC", "O_SYNC"):
                for direct in (os.O_DIRECT, 0):
                    file = os.open(mount / "file", os.O_RDWR | getattr(os, name) | direct)
                    self.assertEqual(self.trips_of_writes(events, file, name, range(64)), 1)
                    os.close(file)
            file = os.open(mount / "file", os.O_RDWR | os.O_DSYNC | os.O_DIRECT)
            self.assertEqual(self.trips_of_writes(events, file, "O_DSYNC", range(128, 192)), 2)
            os.close(file)
            mount.unmount()
            data_proxy.close()
            mds_proxy.close()

    def trips(self, events, file, sync, blocks, twice=False):
        """The medians of the round trips that writes of one block waited for, and the syncs behind them."""
        writes, syncs = [], []
        for number in blocks:
            for _ in range(2 if twice else 1):
                seen = len(events)
                os.pwrite(file, aligned(4096, 1), number * 4096)
            writes.append(round_trips(events[seen:]))
            seen = len(events)
            sync(file)
            syncs.append(round_trips(events[seen:]))
        print(f"{sync.__name__} of blocks {blocks}: round trips of writes {sorted(collections.Counter(writes).items())}, "
              f"of syncs {sorted(collections.Counter(syncs).items())}")
        # Not of each: a deferred commit of the modification time may be on the wire beside one.
        return statistics.median(writes), statistics.median(syncs)

    def trips_of_writes(self, events, file, name, blocks):
        """The same of the writes themselves."""
        counts = []
        for number in blocks:
            seen = len(events)
            os.pwrite(file, aligned(4096, 1), number * 4096)
            counts.append(round_trips(events[seen:]))
        print(f"{name} writes of blocks {blocks}: round trips {sorted(collections.Counter(counts).items())}")
        return statistics.median(counts)


if __name__ == "__main__":
    unittest.main()
