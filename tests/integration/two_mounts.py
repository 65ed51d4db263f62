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

    def make(self, name, size):
        """A file of random bytes, and these."""
        path = self.mount / name
        content = os.urandom(size)
        path.write_bytes(content)
        return path, content
