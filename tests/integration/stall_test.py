#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A daemon that stands still for longer than its lease, under a writer: work goes on by itself when it runs again.

usage: stall_test.py BIN_DIRECTORY
"""
import json
import signal
import subprocess
import sys
import unittest

import record_writer
from cluster import Cluster, wait_until

BIN = sys.argv.pop(1)
LEASE = 2
# From SIGCONT on: under sanitizers, on a busy machine. By hand it is below two.
SECONDS = 20


class Stall(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(BIN, pool_size="256M", lease_seconds=LEASE, brick_patience_seconds=30).start_all()
        self.mount = self.cluster.mount()
        self.writer = record_writer.Writer(self.mount / "records")
        self.writer.goes_on(SECONDS, "at first")

    def tearDown(self):
        for name in ("mds", "brick"):
            self.cluster.signal(name, signal.SIGCONT)
        self.writer.process.kill()
        self.writer.end()
        self.cluster.close()

    def health(self):
        """How `pnfsrdma health` ended, and what it said."""
        shown = subprocess.run([f"{BIN}/pnfsrdma", "health", "--json", "--socket", str(self.cluster.home / "console.sock")],
                               capture_output=True, text=True, timeout=120)
        return shown.returncode, json.loads(shown.stdout) if shown.stdout else {}

    def is_well_and_works(self, what):
        """What health says is true: from the moment it is ok the writer is held up by nothing."""
        wait_until(lambda: self.health()[0] == 0, SECONDS, f"health is ok {what}")
        self.writer.goes_on(SECONDS, what)

    def every_record_is_there(self):
        self.assertEqual(self.writer.end(), 0)
        self.assertGreater(self.writer.durable, 4)
        self.assertEqual(self.writer.lost, 0)
        other = self.cluster.mount(name="other")
        self.assertEqual((other / "records").read_bytes(), record_writer.expected(self.writer.durable))
        other.unmount()
        self.mount.unmount()

    def expiries(self):
        return self.cluster.log("brick").count("lease-expired")

    def test_an_mds_that_was_silent_for_longer_than_the_bricks_lease_begins_again(self):
        for round_number in (1, 2):
            self.cluster.signal("mds", signal.SIGSTOP)
            wait_until(lambda: self.expiries() == round_number, LEASE + SECONDS, "the brick gives its MDS up")
            code, _ = self.health()
            self.assertNotEqual(code, 0, "who does not answer is not well")
            self.cluster.signal("mds", signal.SIGCONT)
            self.is_well_and_works(f"behind stall {round_number} of the MDS")
        self.every_record_is_there()

    def test_a_brick_that_stood_still_goes_on_and_health_says_so_meanwhile(self):
        self.cluster.signal("brick", signal.SIGSTOP)
        wait_until(lambda: self.health()[0] != 0, 8, "health has failed")
        failed = [check for check in self.health()[1]["checks"] if check["status"] == "failed"]
        self.assertEqual([check["name"] for check in failed], ["bricks"], failed)
        self.cluster.signal("brick", signal.SIGCONT)
        self.is_well_and_works("behind a stall of the brick")
        self.every_record_is_there()


if __name__ == "__main__":
    unittest.main()
