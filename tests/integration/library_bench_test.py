#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pnfsrdma-bench: every row by the library and by a mount, what it prints, and that it leaves nothing.

usage: library_bench_test.py BIN_DIRECTORY
"""
import json
import os
import subprocess
import sys
import unittest

from cluster import Cluster

BIN = sys.argv.pop(1)
DURABLE_CHAIN = "durable 16 x 64 B"


class Bench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="512M").start_all()
        cls.mount = cls.cluster.mount()

    @classmethod
    def tearDownClass(cls):
        cls.mount.unmount()
        cls.cluster.close()

    def run_bench(self, *words):
        return subprocess.run([f"{BIN}/pnfsrdma-bench", *words, "--seconds", "0.02", "--rounds", "1", "--size", "64"],
                              capture_output=True, text=True, timeout=300, check=False)

    def test_every_row_by_the_library_and_by_the_mount(self):
        for by, source in (("ring", [str(self.mount.path)]), ("library", ["127.0.0.1:/", "-o", f"port={self.cluster.nfs_port}"])):
            done = self.run_bench(*source, str(self.mount.path), "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            reports = [json.loads(line) for line in done.stdout.splitlines()]
            rows = [(report["row"], report["depth"]) for report in reports if report["by"] == by]
            self.assertEqual(len(rows), len(set(rows)))
            self.assertEqual(rows, [(report["row"], report["depth"]) for report in reports if report["by"] == "mount"])
            self.assertIn((DURABLE_CHAIN, 1), rows)
            for report in reports:
                self.assertGreater(report["a_second"], 0, report)
                self.assertLessEqual(report["p50_us"], report["p99_us"], report)
        self.assertEqual(os.listdir(self.mount.path), [])

    def test_chosen_rows_as_a_table(self):
        done = self.run_bench(str(self.mount.path), "--row", DURABLE_CHAIN, "--row", "read 4 KiB")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split(" ring ")[0].split() for line in done.stdout.splitlines() if " ring " in line]
        self.assertEqual(rows, [["read", "4", "KiB", "1"], ["read", "4", "KiB", "64"], [*DURABLE_CHAIN.split(), "1"]])

    def test_a_row_that_is_not_there_is_refused(self):
        done = self.run_bench(str(self.mount.path), "--row", "read 5 KiB")
        self.assertEqual(done.returncode, 2)
        self.assertIn("read 5 KiB", done.stderr)


if __name__ == "__main__":
    unittest.main()
