#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An NFSv4.1 server that is not ours and has no layouts of our type: NFS-Ganesha, which loses with its process what was not
committed.

usage: other_server_test.py BIN_DIRECTORY
"""
import errno
import os
import subprocess
import sys
import time
import unittest

import cluster
import ganesha
from renameat2 import EXCHANGE, NOREPLACE, renameat2

BIN = sys.argv.pop(1)


class OtherServer(unittest.TestCase):
    def setUp(self):
        self.server = ganesha.Ganesha(BIN).start()
        self.mount = cluster.Mount(self.server, "mount", "flush_after=0", self.server.nfs_port)

    def tearDown(self):
        self.mount.close()
        self.server.close()

    def test_a_rename_with_flags_is_refused_and_not_tried(self):
        for name in ("a", "b"):
            (self.mount / name).write_text(name)
        for new, flags in (("new", NOREPLACE), ("b", EXCHANGE)):
            with self.assertRaises(OSError) as caught:
                renameat2(self.mount / "a", self.mount / new, flags)
            self.assertEqual(caught.exception.errno, errno.EINVAL)
        self.assertEqual(self.mount.statistics()["mds_operations"].get("RENAME", 0), 0)
        self.assertEqual([(self.mount / name).read_text() for name in ("a", "b")], ["a", "b"])

    def test_what_close_has_acknowledged_is_committed(self):
        before = self.mount.statistics()["mds_operations"]
        content = os.urandom(300000)
        with open(self.mount / "file", "wb", buffering=0) as file:
            file.write(content[:4096])  # durable at once: it might be all
            file.write(content[4096:])
        after = self.mount.wait_until_quiet()["mds_operations"]
        self.assertGreaterEqual(after.get("COMMIT", 0) - before.get("COMMIT", 0), 1)
        self.server.kill()
        self.assertEqual((self.server.path / "file").read_bytes(), content)

    def lose_power(self, kept):
        """The server comes back with so many bytes of the file."""
        self.server.kill()
        os.truncate(self.server.path / "file", kept)
        time.sleep(1.1)  # its write verifier is the second it was started in
        self.server.start()

    def test_what_was_not_committed_is_written_again_when_the_server_is_back(self):
        content = os.urandom(3 << 20)
        file = cluster.OpenFile(self.mount / "file")
        file.write(content[:4096])  # durable at once
        file.write(content[4096:], 4096)
        self.lose_power(1 << 20)
        file.fsync()
        self.assertEqual((self.server.path / "file").read_bytes(), content)
        counts = self.mount.statistics()
        self.assertEqual(counts["resent_bytes"], len(content) - 4096)
        self.assertEqual(counts["lost_writes"], 0)
        file.close()

    def test_a_reader_of_the_mount_does_not_see_what_the_server_has_lost(self):
        file = cluster.OpenFile(self.mount / "file", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
        file.write(b"old!" * 1024)  # durable at once
        file.write(b"new!" * 1024, 4096)
        self.lose_power(4096)
        self.assertEqual(file.read(8192), b"old!" * 1024 + b"new!" * 1024)
        file.close()

    def test_no_layout_is_asked_for(self):
        (self.mount / "file").write_bytes(os.urandom(8 << 20))
        self.assertEqual(len((self.mount / "file").read_bytes()), 8 << 20)
        counts = self.mount.wait_until_quiet()["mds_operations"]
        self.assertNotIn("LAYOUTGET", counts)
        self.assertNotIn("GETDEVICELIST", counts)

    def test_it_says_that_data_goes_through_the_server(self):
        with open("/proc/mounts") as mounts:
            source = next(line.split()[0] for line in mounts if line.split()[1] == str(self.mount.path))
        self.assertIn("through", source)
        self.assertNotIn("iwarp", source)
        shown = subprocess.run([f"{BIN}/pnfsrdma", "stat", str(self.mount.path)], capture_output=True, text=True, check=True)
        self.assertIn("through the server", shown.stdout)

    def test_a_read_only_close_commits_nothing(self):
        (self.mount / "file").write_bytes(b"x")
        before = self.mount.wait_until_quiet()["mds_operations"].get("COMMIT", 0)
        (self.mount / "file").read_bytes()
        self.assertEqual(self.mount.wait_until_quiet()["mds_operations"].get("COMMIT", 0), before)


if __name__ == "__main__":
    cluster.require_mounts()
    if ganesha.PROGRAM is None:
        print(f"skipped: {ganesha.WHY_NOT}")
        sys.exit(77)
    unittest.main()
