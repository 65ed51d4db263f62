#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A metadata log that has lost what was synced: the MDS does not start, and no block of a file is freed.

usage: damaged_metadata_test.py BIN_DIRECTORY
"""
import hashlib
import os
import pathlib
import sys
import unittest

from cluster import Cluster

BIN = sys.argv.pop(1)
KIB = 1 << 10


def damage(path):
    """Turns some bytes over in the middle of the file."""
    with open(path, "r+b") as f:
        at = path.stat().st_size // 2
        f.seek(at)
        old = f.read(16)
        f.seek(at)
        f.write(bytes(b ^ 0xFF for b in old))


class DamagedMetadata(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(BIN, pool_size="256M", lease_seconds=5).start_all()
        self.mount = self.cluster.mount()
        self.store = next(p.parent for p in (self.cluster.home / "mds").rglob("CURRENT"))

    def tearDown(self):
        self.cluster.close()

    def mdsd(self, *arguments):
        return self.cluster.run("mdsd", "--config", str(self.cluster.home / "mds.json"), *arguments, check=False)

    def content_of_store(self):
        return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in self.store.iterdir() if p.is_file()}

    def test_it_is_refused_and_the_loss_has_to_be_accepted(self):
        for i in range(60):
            with open(self.mount / f"file{i}", "wb") as f:
                f.write(os.urandom(64 * KIB))
                os.fsync(f.fileno())
        self.mount.unmount()
        self.cluster.kill("mds")
        log = max(self.store.glob("*.log"), key=lambda p: p.stat().st_size)
        damage(log)
        before = self.content_of_store()

        for arguments in ((), ("--check",)):
            refused = self.mdsd(*arguments)
            self.assertNotEqual(refused.returncode, 0, arguments)
            for word in (log.name, "--accept-metadata-loss", "backup"):
                self.assertIn(word, refused.stderr)
        self.assertEqual(self.content_of_store(), before)

        accepted = self.mdsd("--accept-metadata-loss")
        self.assertEqual(accepted.returncode, 0, accepted.stderr)
        copy = pathlib.Path(f"{self.store}.damaged-1")
        self.assertTrue((copy / log.name).exists())

        self.cluster.start_mds()
        mount = self.cluster.mount(name="again")
        names = set(os.listdir(mount.path))
        self.assertIn("file0", names)
        self.assertNotIn("file59", names)
        with open(mount / "new", "wb") as f:
            f.write(b"new")
            os.fsync(f.fileno())
        mount.unmount()
        self.cluster.stop("mds")
        checked = self.mdsd("--check")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
