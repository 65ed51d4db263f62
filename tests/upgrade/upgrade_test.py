#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pool and metadata of older programs are taken over; those of newer ones are refused and stay as they are.

usage: upgrade_test.py BIN_DIRECTORY SET_FORMAT
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))
from cluster import Cluster, wait_until  # noqa: E402

BIN = sys.argv.pop(1)
SET_FORMAT = sys.argv.pop(1)
VERSION_AT = 8  # of the superblock: its version, u32 (server/brickd/format.h)
COPIES_AT = (0, 4096)


def unpack(cluster):
    """The old pool and metadata in the place of the cluster's own."""
    with tarfile.open(HERE / "one_brick.tar.xz") as archive:
        archive.extractall(cluster.home)
    shutil.move(cluster.home / "pool.img", cluster.pool_directory / "pool.img")


def start(cluster):
    cluster.start_brick()
    cluster.start_mds()


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def stop(cluster):
    cluster.stop("mds")
    cluster.stop("brick")


def find_sound(cluster):
    """Both checkers, with the daemons stopped."""
    checked = cluster.run("brickd", "--config", str(cluster.home / "brick.json"), "--check")
    assert "the pool is sound" in checked.stdout, checked.stdout
    cluster.start_brick()
    checked = cluster.run("mdsd", "--config", str(cluster.home / "mds.json"), "--check")
    assert checked.stdout.endswith("\nsound\n"), checked.stdout
    cluster.stop("brick")


class Upgrade(unittest.TestCase):
    def test_what_the_program_of_one_brick_wrote_is_taken_over(self):
        with Cluster(BIN) as cluster:
            unpack(cluster)
            find_sound(cluster)
            start(cluster)
            copy = cluster.home / "mds/metadata.format-1"
            self.assertTrue((copy / "CURRENT").is_file(), "a checkpoint of the metadata as it was")
            mount = cluster.mount()
            self.check_files(mount.path)
            (mount.path / "new").write_bytes(b"n" * 3000000)
            mount.unmount()
            stop(cluster)
            start(cluster)
            mount = cluster.mount()
            self.check_files(mount.path)
            self.assertEqual((mount.path / "new").read_bytes(), b"n" * 3000000)
            self.assertFalse((mount.path / "gone").exists())
            mount.unmount()
            stop(cluster)
            find_sound(cluster)

    def test_the_copy_from_before_an_upgrade_can_take_the_place_of_the_metadata(self):
        with Cluster(BIN) as cluster:
            unpack(cluster)
            start(cluster)
            # The brick has to see this epoch; the MDS is ready before it is.
            wait_until(lambda: "brick-ready" in cluster.log("mds"), 30, "the brick is ready")
            stop(cluster)
            store = cluster.home / "mds/metadata"
            store.rename(cluster.home / "mds/metadata.converted")
            (cluster.home / "mds/metadata.format-1").rename(store)
            # The brick has seen a later epoch: it refuses this one, and takes the next, as systemd would start it.
            start(cluster)
            self.assertEqual(cluster.processes["mds"].wait(timeout=30), 1)
            cluster.start_mds()
            mount = cluster.mount()
            self.check_files(mount.path)
            mount.unmount()
            stop(cluster)
            find_sound(cluster)

    def check_files(self, root):
        for line in (root.parent / "SHA256SUMS").read_text().splitlines():
            wanted, name = line.split()
            self.assertEqual(digest(root / name), wanted, name)
        self.assertEqual(os.readlink(root / "link"), "folder/large")
        self.assertEqual((root / "hard").stat().st_ino, (root / "folder/deeper/small").stat().st_ino)
        empty = (root / "empty").stat()
        self.assertEqual((empty.st_mode & 0o777, empty.st_uid, empty.st_gid), (0o640, 1000, 1001))
        self.assertEqual((root / "holes").stat().st_size, 5 << 20)

    def test_a_pool_of_a_newer_format_is_refused_and_left_alone(self):
        with Cluster(BIN) as cluster:
            unpack(cluster)
            pool = cluster.pool_directory / "pool.img"
            with open(pool, "r+b") as file:
                for at in COPIES_AT:
                    file.seek(at + VERSION_AT)
                    file.write((99).to_bytes(4, "little"))
            before = digest(pool)
            for arguments in ([], ["--check"], ["--format"]):
                refused = cluster.run("brickd", "--config", str(cluster.home / "brick.json"), *arguments, check=False)
                self.assertNotEqual(refused.returncode, 0, arguments)
                if arguments != ["--format"]:
                    self.assertIn("format version 99", refused.stderr)
                    self.assertIn("use a newer one", refused.stderr)
            self.assertEqual(digest(pool), before)

    def test_metadata_of_a_newer_format_are_refused_and_nothing_in_them_is_lost(self):
        with Cluster(BIN) as cluster:
            unpack(cluster)
            store = cluster.home / "mds/metadata"
            subprocess.run([SET_FORMAT, store, "99"], check=True)
            cluster.start_brick()
            for arguments, code in ([], 1), (["--check"], 2):
                refused = cluster.run("mdsd", "--config", str(cluster.home / "mds.json"), *arguments, check=False)
                self.assertEqual(refused.returncode, code, arguments)
                self.assertIn("the metadata has format 99", refused.stderr)
                self.assertIn("use the newer program", refused.stderr)
            # As it was: the program that knows the format goes on.
            subprocess.run([SET_FORMAT, store, "1"], check=True)
            cluster.start_mds()
            mount = cluster.mount()
            self.check_files(mount.path)
            mount.unmount()
            stop(cluster)
            find_sound(cluster)


if __name__ == "__main__":
    unittest.main()
