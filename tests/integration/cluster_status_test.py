#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`pnfsrdma cluster status`, the REST API, metrics and alerts say who leads, who follows, and what is wrong.

usage: cluster_status_test.py BIN_DIRECTORY
"""
import json
import subprocess
import sys
import unittest

from cluster import Cluster, require_mounts, wait_until
from etcd import Etcd, require_etcd
from pair import Pair

BIN = sys.argv.pop(1)
SECONDS = 60  # 5.25 s for a take-over, and what sanitizers and a busy machine add


class ClusterStatus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        require_mounts()
        require_etcd()

    def ask(self, socket, config, *options):
        home = self.cluster.home
        return subprocess.run([f"{BIN}/pnfsrdma", "--socket", str(home / socket), *options, "cluster", "status", "--config",
                               str(home / config)], capture_output=True, text=True, timeout=60, check=False)

    def by_api(self, socket="console.sock"):
        asked = self.ask(socket, "none.json", "--json")
        self.assertIn(asked.returncode, (0, 1, 3), asked.stderr)
        return json.loads(asked.stdout) if asked.returncode != 3 else None

    def states(self, cluster):
        return {server["name"]: server["state"] for server in cluster["servers"]}

    def wait_for(self, socket, wanted, what):
        def right():
            cluster = self.by_api(socket)
            return cluster is not None and wanted(cluster)
        wait_until(right, SECONDS, what)

    def test_a_take_over_is_seen(self):
        etcd = Etcd()
        self.addCleanup(etcd.close)
        self.cluster = Pair(BIN, etcd)
        self.addCleanup(self.cluster.close)
        self.cluster.start_all()
        self.wait_for("console.sock", lambda now: now["takeover_possible"], "a take-over is possible")
        now = self.by_api()
        self.assertTrue(now["configured"])
        self.assertEqual(now["leader"], "mds")
        self.assertEqual(self.states(now), {"mds": "leads", "mds2": "follows"})
        self.assertEqual(now["problems"], [])
        self.assertEqual(sorted(member["name"] for member in now["members"]), etcd.names)
        self.assertEqual(sum(member["leads"] for member in now["members"]), 1)
        self.assertEqual({member["state"] for member in now["members"]}, {"answers"})
        shown = self.ask("console.sock", "none.json")
        self.assertEqual(shown.returncode, 0, shown.stdout + shown.stderr)
        self.assertIn("mds leads since", shown.stdout)
        self.assertEqual(now["takeovers"], 0)
        self.assertGreater(now["costs"]["values"], 0)
        self.assertGreater(now["costs"]["bytes"], now["costs"]["values"])
        self.assertGreater(now["costs"]["latency_us"]["p50"], 0)
        self.assertIn("values of", shown.stdout)
        self.assertIn("On this server's medium: up to ", shown.stdout)
        self.assertIn("another server takes over", shown.stdout)
        # The standby has no API: it asks etcd.
        shown = self.ask("console2.sock", "mds2.json", "--json")
        self.assertEqual(shown.returncode, 0, shown.stdout + shown.stderr)
        standby = json.loads(shown.stdout)
        self.assertEqual((standby["leader"], self.states(standby)), (now["leader"], self.states(now)))
        self.assertIsNone(standby["leading_seconds"])
        self.assertIsNone(standby["costs"])

        self.cluster.kill("mds")
        self.cluster.wait_for("mds2", "ready", seconds=SECONDS)
        alone = {"mds": "away", "mds2": "leads"}
        self.wait_for("console2.sock", lambda now: self.states(now) == alone, "mds2 leads alone")
        now = self.by_api("console2.sock")
        self.assertFalse(now["takeover_possible"])
        self.assertEqual(now["takeovers"], 1)
        self.assertIn("mds neither leads nor follows.", [problem["detail"] for problem in now["problems"]])
        shown = self.ask("console2.sock", "none.json")
        self.assertEqual(shown.returncode, 1, shown.stdout + shown.stderr)
        self.assertIn("no other server takes over", shown.stdout)

        self.cluster.launch("mds")
        self.cluster.wait_for("mds", "standby", count=2, seconds=SECONDS)
        self.wait_for("console2.sock", lambda now: now["takeover_possible"], "a take-over is possible again")
        etcd.kill("m3")
        self.wait_for("console2.sock", lambda now: not now["takeover_possible"], "a member of etcd is missed")
        self.assertIn("etcd's member m3 ", self.by_api("console2.sock")["problems"][0]["detail"])

    def test_a_server_alone_is_no_cluster(self):
        self.cluster = Cluster(BIN, pool_size="512M", insecure=True)
        self.addCleanup(self.cluster.close)
        self.cluster.start_all()
        self.assertFalse(self.by_api()["configured"])
        shown = self.ask("console.sock", "none.json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("Not a cluster", shown.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
