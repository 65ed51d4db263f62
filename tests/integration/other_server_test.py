#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An NFSv4.1 server that is not ours and has no layouts of our type: NFS-Ganesha, which loses with its process what was not
committed.

usage: other_server_test.py BIN_DIRECTORY
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import cluster

BIN = sys.argv.pop(1)
GANESHA = shutil.which("ganesha.nfsd")

CONFIG = """
NFS_CORE_PARAM {{ NFS_Port = {port}; Protocols = 4; Bind_addr = 127.0.0.1; Enable_RQUOTA = false; mount_path_pseudo = true; }}
NFSv4 {{ Minor_Versions = 1, 2; Graceless = true; RecoveryBackend = fs; }}
EXPORT {{ Export_Id = 1; Path = {path}; Pseudo = /; Access_Type = RW; Squash = No_Root_Squash; SecType = sys; FSAL {{ Name = VFS; }} }}
"""


class Ganesha:
    """The server, and the folder it exports."""

    def __init__(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="pnfsrdma-other."))
        self.nfs_port = cluster.free_port()
        self.path = self.home / "export"
        self.path.mkdir()
        (self.home / "ganesha.conf").write_text(CONFIG.format(port=self.nfs_port, path=self.path))
        self.start()

    def start(self):
        self.process = subprocess.Popen([GANESHA, "-F", "-f", self.home / "ganesha.conf", "-p", self.home / "pid", "-L",
                                         self.home / "ganesha.log", "-N", "EVENT"], stdin=subprocess.DEVNULL)
        cluster.wait_until(lambda: cluster.answers(self.nfs_port), 30, "Ganesha listens")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def program(self, name):
        return f"{BIN}/pnfsrdma-{name}"

    def log(self, name):
        return (self.home / f"{name}.log").read_text()

    def close(self):
        if self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.home)


class OtherServer(unittest.TestCase):
    def setUp(self):
        self.server = Ganesha()
        self.mount = cluster.Mount(self.server, "mount", "flush_after=0", self.server.nfs_port)

    def tearDown(self):
        self.mount.close()
        self.server.close()

    def test_what_close_has_acknowledged_is_committed(self):
        before = self.mount.statistics()["mds_operations"]
        content = os.urandom(300000)
        (self.mount / "file").write_bytes(content)
        after = self.mount.wait_until_quiet()["mds_operations"]
        self.assertGreaterEqual(after.get("COMMIT", 0) - before.get("COMMIT", 0), 1)
        self.server.kill()
        self.assertEqual((self.server.path / "file").read_bytes(), content)

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
    if GANESHA is None:
        print("skipped: ganesha.nfsd is not installed (packaging/dependencies.sh peers)")
        sys.exit(77)
    unittest.main()
