#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A mount in the background logs to syslog: one line an event, by its name.

usage: syslog_test.py BIN_DIRECTORY
"""
import os
import socket
import subprocess
import sys
import time
import unittest

from cluster import Cluster, wait_until

BIN = sys.argv.pop(1)
LOG = "/dev/log"
LOG_DAEMON = 3


class Syslog(unittest.TestCase):
    def setUp(self):
        if os.path.exists(LOG):
            self.skipTest(f"{LOG} belongs to a syslog daemon of this machine")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(LOG)
        self.lines = []

    def tearDown(self):
        if hasattr(self, "socket"):
            self.socket.close()
            os.unlink(LOG)

    def heard(self, words):
        while True:
            try:
                self.lines.append(self.socket.recv(65536).decode())
            except BlockingIOError:
                return any(words in line for line in self.lines)

    def test_events_of_a_mount_in_the_background_are_in_syslog(self):
        with Cluster(BIN, pool_size="64M") as cluster:
            cluster.start_all()
            point = cluster.home / "background"
            point.mkdir()
            started = subprocess.run([cluster.program("fuse"), f"127.0.0.1:{cluster.nfs_port}:/", str(point)],
                                     capture_output=True, text=True, timeout=60)
            try:
                self.assertEqual(started.returncode, 0, started.stderr)
                self.assertEqual(started.stderr, "")
                wait_until(lambda: self.heard("fuse: mounted source=127.0.0.1:"), 60, "the mount is in syslog")
                cluster.kill("mds")
                cluster.start_mds()
                (point / "file").write_text("goes on")
                wait_until(lambda: self.heard("session: lost server=127.0.0.1:"), 30, "so is the loss of the server")
            finally:
                subprocess.run(["umount", str(point)], check=True, timeout=60)
            wait_until(lambda: self.heard("fuse: unmounted"), 30, "and the end")
            time.sleep(0.2)
        for line in self.lines:
            self.assertNotIn("\n", line.rstrip("\n\0"))
            self.assertIn("pnfsrdma-fuse[", line)
            self.assertEqual(int(line[1:line.index(">")]) >> 3, LOG_DAEMON)

    def test_a_mount_that_fails_says_so_where_it_was_started(self):
        with Cluster(BIN, pool_size="64M") as cluster:
            point = cluster.home / "background"
            point.mkdir()
            started = subprocess.run([cluster.program("fuse"), f"127.0.0.1:{cluster.nfs_port}:/", str(point)],
                                     capture_output=True, text=True, timeout=120)
            self.assertNotEqual(started.returncode, 0)
            self.assertIn("pnfsrdma-fuse:", started.stderr)


if __name__ == "__main__":
    unittest.main()
