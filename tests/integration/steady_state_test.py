#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In the steady state (layout held, file allocated, O_DIRECT) data goes by RDMA and costs no MDS call.

usage: steady_state_test.py BIN_DIRECTORY
"""
import mmap
import os
import random
import statistics
import sys
import time
import unittest

from cluster import Cluster
from delay_proxy import DelayProxy

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
        cls.mount = cls.cluster.mount()
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
        time.sleep(0.5)  # a deferred mtime commit of the work before
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


class OneRoundTrip(unittest.TestCase):
    """With 2 ms of network between client and servers, a sync of an overwrite waits for one round trip."""
    ROUND_TRIP = 0.002

    def test_fdatasync_and_fsync_wait_once(self):
        from cluster import free_port
        with Cluster(BIN, pool_size="256M") as cluster:
            # The brick advertises the proxy's port, so that the client's data connection goes through it.
            data_proxy = DelayProxy(cluster.data_port, self.ROUND_TRIP / 2)
            config = __import__("json").loads((cluster.home / "brick.json").read_text())
            config["data"]["advertise"] = [f"127.0.0.1:{data_proxy.port}"]
            cluster.write_config("brick", config)
            cluster.start_all()
            mds_proxy = DelayProxy(cluster.nfs_port, self.ROUND_TRIP / 2)
            mount = cluster.mount(port=mds_proxy.port)
            file = os.open(mount / "file", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
            block = aligned(4096, 1)
            for i in range(64):
                os.pwrite(file, block, i * 4096)
            os.fsync(file)
            ceiling = self.ping(data_proxy)
            for name, sync in (("fdatasync", os.fdatasync), ("fsync", os.fsync)):
                with self.subTest(name):
                    calls, times = mount.statistics()["mds_calls"], []
                    for i in range(60):
                        os.pwrite(file, block, (i % 64) * 4096)
                        begin = time.perf_counter()
                        sync(file)
                        times.append(time.perf_counter() - begin)
                    median = statistics.median(times)
                    print(f"{name}: median {median * 1e3:.3f} ms over a round trip of {self.ROUND_TRIP * 1e3:.0f} ms "
                          f"(measured {ceiling * 1e3:.3f} ms)")
                    self.assertLessEqual(median, 1.3 * max(self.ROUND_TRIP, ceiling))
                    if sync is os.fdatasync:
                        self.assertEqual(mount.statistics()["mds_calls"] - calls, 0)
            os.close(file)
            mount.unmount()
            data_proxy.close()
            mds_proxy.close()

    def ping(self, proxy):
        """A round trip through such a proxy, as this machine makes it today."""
        import socket
        import threading
        server = socket.create_server(("127.0.0.1", 0))
        echo_proxy = DelayProxy(server.getsockname()[1], proxy.delay)

        def echo():
            peer, _ = server.accept()
            while data := peer.recv(64):
                peer.sendall(data)
        threading.Thread(target=echo, daemon=True).start()
        times = []
        with socket.create_connection(("127.0.0.1", echo_proxy.port)) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(40):
                begin = time.perf_counter()
                s.sendall(b"x" * 48)
                s.recv(64)
                times.append(time.perf_counter() - begin)
        echo_proxy.close()
        server.close()
        return statistics.median(times)


if __name__ == "__main__":
    unittest.main()
