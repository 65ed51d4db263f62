#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Growth that is not committed, in many open files at once: no write waits for room, however small each file is.

usage: growth_test.py BIN_DIRECTORY
"""
import os
import sys
import unittest

from cluster import Cluster

BIN = sys.argv.pop(1)
FILES = 300


class Growth(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="1G").start_all()
        cls.mount = cls.cluster.mount()

    @classmethod
    def tearDownClass(cls):
        cls.mount.unmount()
        cls.cluster.close()

    def grow_many(self, size):
        """Writes `size` bytes to each of many files that stay open; what the counters say it took."""
        before = self.mount.statistics()
        descriptors = []
        try:
            for number in range(FILES):
                descriptors.append(os.open(self.mount / f"{size}.{number}", os.O_RDWR | os.O_CREAT))
                os.pwrite(descriptors[-1], bytes([number % 251]) * size, 0)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        after = self.mount.statistics()
        for number in (0, FILES - 1):
            self.assertEqual((self.mount / f"{size}.{number}").read_bytes(), bytes([number % 251]) * size)
        return {name: after[name] - before[name] for name in ("fallbacks", "mds_writes", "rdma_writes")}

    def test_little_that_goes_through_the_server(self):
        counts = self.grow_many(100)
        self.assertEqual(counts["mds_writes"], FILES)
        self.assertEqual(counts["fallbacks"], 0)

    def test_little_that_goes_by_rdma(self):
        counts = self.grow_many(100_000)
        self.assertEqual(counts["mds_writes"], 0)
        self.assertGreaterEqual(counts["rdma_writes"], FILES)
        self.assertEqual(counts["fallbacks"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
