#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Truncation: it waits for nobody but those who hold what it cuts off, and its size is the size from then on.

usage: truncate_test.py BIN_DIRECTORY
"""
import os
import signal
import sys
import threading
import unittest

from cluster import Cluster, wait_until

BIN = sys.argv.pop(1)
MIB = 1 << 20


class Truncate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="1G").start_all()
        cls.a, cls.b = cls.cluster.mount(name="a"), cls.cluster.mount(name="b")

    @classmethod
    def tearDownClass(cls):
        cls.a.unmount()
        cls.b.unmount()
        cls.cluster.close()

    def name(self):
        return self.id().rsplit(".", 1)[-1]

    def open(self, path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
        self.addCleanup(os.close, descriptor)
        return descriptor

    def test_one_client_alone_is_recalled_nothing(self):
        """Memory, holes and layouts come to lie so that a write layout is asked for across a hole."""
        before = self.cluster.mds_counters()
        descriptor = self.open(self.a / self.name())
        for size, offset, length in ((None, 0, 0x25000), (0x24000, 0x55000, 0x85000), (0x94ed2, 0xe1358, 0x8000),
                                     (None, 0x1b87b, 0x50ce), (0x8e746, 0, 0)):
            if size is not None:
                os.ftruncate(descriptor, size)
                self.assertEqual(os.fstat(descriptor).st_size, size)
            os.pwrite(descriptor, b"x" * length, offset)
        after = self.cluster.mds_counters()
        for counter in ("layouts_recalled", "layouts_revoked"):
            self.assertEqual(after[counter], before[counter], counter)
        self.assertEqual(after["errors"].get("SETATTR", 0), before["errors"].get("SETATTR", 0))

    def test_the_new_size_is_shown_though_the_old_one_was_asked_for_meanwhile(self):
        descriptor = self.open(self.a / self.name())
        os.pwrite(descriptor, bytes(4 * MIB), 0)
        os.fsync(descriptor)
        (self.b / self.name()).read_bytes()  # and holds a layout from here on
        recalled = self.cluster.mds_counters()["layouts_recalled"]

        def asked():
            counts = self.a.statistics()["mds_operations"]
            return counts["GETATTR"] - counts.get("SETATTR", 0)  # a SETATTR has one behind it

        self.b.process.send_signal(signal.SIGSTOP)
        try:
            truncation = threading.Thread(target=os.ftruncate, args=(descriptor, MIB))
            truncation.start()
            wait_until(lambda: self.cluster.mds_counters()["layouts_recalled"] > recalled, 20, "the truncation waits")
            before = asked()

            def asked_again():  # when what is known is too old
                self.assertEqual(os.stat(self.a / self.name()).st_size, 4 * MIB)
                return asked() > before
            wait_until(asked_again, 20, "the size is asked for while the truncation waits")
        finally:
            self.b.process.send_signal(signal.SIGCONT)
        truncation.join()
        self.assertEqual(os.fstat(descriptor).st_size, MIB)
        self.assertEqual(os.lseek(descriptor, 0, os.SEEK_END), MIB)


if __name__ == "__main__":
    unittest.main(verbosity=2)
