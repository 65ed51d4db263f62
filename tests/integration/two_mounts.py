# SPDX-License-Identifier: Apache-2.0
"""A test case with one server and two mounts of it."""
import os
import unittest

from cluster import Cluster


class TwoMounts(unittest.TestCase):
    """`mount` and `other` of one cluster, for all tests of a class, which says what it wants:"""
    bin = None  # BIN_DIRECTORY
    daemons = {}  # of the Cluster
    options = "actimeo=0"  # of `mount`

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(cls.bin, **cls.daemons).start_all()
        cls.mount = cls.cluster.mount(cls.options, name="a")
        cls.other = cls.cluster.mount("actimeo=0", name="b")

    @classmethod
    def tearDownClass(cls):
        cls.mount.unmount()
        cls.other.unmount()
        cls.cluster.close()

    def count(self, name):
        """What `mount` has counted by this name."""
        statistics = self.mount.statistics()
        return statistics.get(name, statistics["mds_operations"].get(name, 0))

    def calls(self, work):
        """Of `mount`: all COMPOUNDs, and by operation."""
        before = self.mount.wait_until_quiet()
        work()
        after = self.mount.wait_until_quiet()
        counts = {name: count - before["mds_operations"].get(name, 0)
                  for name, count in after["mds_operations"].items()
                  if count != before["mds_operations"].get(name, 0)}
        return after["mds_calls"] - before["mds_calls"], counts

    def make(self, name, size):
        """A file of random bytes, and these."""
        path = self.mount / name
        content = os.urandom(size)
        path.write_bytes(content)
        return path, content
