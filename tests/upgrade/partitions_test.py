#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Partitions of older programs are taken over: their label, an owner's pool and its key.

usage: partitions_test.py BIN_DIRECTORY
"""
import pathlib
import shutil
import sys
import tarfile
import unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))
from owner_client import OK, OwnerClient  # noqa: E402
from partitions import BLOCK, Partitions  # noqa: E402

BIN = sys.argv.pop(1)
if not shutil.which("openssl"):
    print("skipped: there is no openssl(1)")
    raise SystemExit(77)


class Upgrade(unittest.TestCase):
    def test_what_the_first_program_with_partitions_wrote_is_taken_over(self):
        partitions = Partitions(BIN)
        self.addCleanup(partitions.close)
        partitions.create("tank", "12M")  # for its configuration: the pool is the old one
        with tarfile.open(HERE / "partitions.tar.xz") as archive:
            archive.extractall(partitions.home)
        listed = partitions.command("list").stdout
        self.assertRegex(listed, r"tank +12 +5 +8  key")
        self.assertRegex(listed, r"mds +6 +2 +-  mds")
        partitions.check("tank")
        partitions.start("tank")
        with OwnerClient(partitions.control["tank"], "tank", partitions.key("tank")) as owner:
            self.assertEqual(owner.attach(), OK)
            self.assertEqual(owner.list(), {0: 2, 64 * BLOCK: 1})
            self.assertEqual((owner.map(1, 0, 2), owner.pread(1, BLOCK - 4, 14)), (OK, b"kept for later"))
            self.assertEqual((owner.map(2, 64 * BLOCK, 1), owner.pread(2, 0, 5)), (OK, b"alone"))
            self.assertEqual(owner.alloc(1, 9)[0], OK)
        partitions.stop("tank")
        partitions.check("tank")


if __name__ == "__main__":
    unittest.main()
