#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fencing by the clock over iwarp: what the lab's scenario "fencing" does over a device, in few rounds.

usage: fencing_test.py BIN_DIRECTORY
"""
import json
import subprocess
import sys
import unittest

from cluster import Cluster

BIN = sys.argv.pop(1)


class Fencing(unittest.TestCase):
    def measure(self, *options):
        with Cluster(BIN, pool_size="64M") as cluster:
            cluster.format()
            cluster.start_brick()
            done = subprocess.run([f"{BIN}/bench-brick", "fencing", "--control", str(cluster.home / "brick.sock"),
                                   "--transport", "iwarp", "--json", *options],
                                  check=False, capture_output=True, text=True, timeout=300)
            print(done.stdout, done.stderr)
            cluster.stop("brick")
            return done.returncode, json.loads(done.stdout)

    def test_no_byte_moves_after_a_revocation_whatever_the_client_does(self):
        _, report = self.measure("--rounds", "3")
        self.assertEqual({row["behaviour"] for row in report["rows"]},
                         {"healthy", "ignores", "no-receives", "broken", "stopped"})
        for row in report["rows"]:
            self.assertTrue(row["sound"], row)
        for neighbour in report["neighbours"]:
            self.assertEqual(neighbour["errors"], 0, neighbour)

    def test_a_revocation_that_does_not_happen_is_noticed(self):
        code, report = self.measure("--rounds", "1", "--without-revocation")
        self.assertEqual(code, 1)
        for row in report["rows"]:
            self.assertFalse(row["sound"], row)


if __name__ == "__main__":
    unittest.main(verbosity=2)
