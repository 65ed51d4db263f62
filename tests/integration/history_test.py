#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The charts of the console against the others who count: the brick, the metrics, the mount, and the space that is used.

usage: history_test.py BIN_DIRECTORY
"""
import os
import sys
import time
import unittest

from cluster import Cluster, wait_until
from console_client import Console

BIN = sys.argv.pop(1)
MIB = 1 << 20
RANGES = {"15m": 5, "1h": 20, "6h": 120, "24h": 480}


class HistoryOfRealDaemons(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(BIN).start_all()
        self.addCleanup(self.cluster.close)
        self.root = Console(self.cluster.home / "console.sock")
        wait_until(lambda: self.brick()["state"] == "ready", 20, "the brick is ready")

    def history(self, of, ident=None, span="15m"):
        answer = self.root.get(f"/history?of={of}&range={span}" + (f"&id={ident}" if ident else ""))
        return answer.json if answer.status == 200 else None

    def total(self, member, *whose):
        found = self.history(*whose)
        amounts = [point[member] for point in found["points"] if point] if found else []
        return None if not amounts or None in amounts else sum(amounts)

    def last(self, member, *whose):
        return [point for point in self.history(*whose)["points"] if point][-1][member]

    def brick(self):
        return self.root.get("/bricks").json["items"][0]

    def test_the_numbers_are_those_of_all_others_who_count(self):
        brick = self.brick()["id"]
        wait_until(lambda: self.history("brick", brick), 10, "the brick has a history")
        mount = self.cluster.mount("flush_after=0")
        self.addCleanup(mount.close)
        with open(mount / "busy.bin", "wb") as file:
            file.write(os.urandom(8 * MIB))
            file.flush()
            os.fsync(file.fileno())
        descriptor = os.open(mount / "busy.bin", os.O_RDONLY)
        for offset in range(0, 8 * MIB, MIB):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.pread(descriptor, MIB, offset)
        os.close(descriptor)
        mount.wait_until_quiet()
        client = self.root.get("/clients").json["items"][0]["id"]
        told = mount.statistics()
        self.assertGreater(told["rdma_write_bytes"], 0)

        # The mount's own numbers are the client's, however coarse the steps.
        for member in ("rdma_read_bytes", "rdma_write_bytes"):
            wait_until(lambda: self.total(member, "client", client) == told[member], 10,
                       f"the client's {member}: {self.total(member, 'client', client)} of {told[member]}")
            for span, step in RANGES.items():
                self.assertEqual(self.total(member, "client", client, span), told[member], span)
                self.assertEqual(self.history("client", client, span)["step_seconds"], step)
        # The brick's own are the brick's and the server's; the metrics say the same.
        counters = self.brick()["counters"]
        for member in ("rdma_read_bytes", "rdma_write_bytes", "rdma_reads", "rdma_writes"):
            self.assertEqual(self.total(member, "brick", brick), counters[member], member)
            self.assertEqual(self.total(member, "server"), counters[member], member)
        metrics = self.root.request("GET", "/metrics", prefix="").text
        self.assertIn(f'pnfsrdma_brick_bytes_total{{brick="{brick}",direction="write"}} '
                      f'{counters["rdma_write_bytes"]}', metrics)
        # Through the server: the client, its export and the server agree.
        exported = self.root.get("/exports").json["items"][0]["id"]
        self.assertEqual(self.total("mds_write_bytes", "client", client), self.total("mds_write_bytes", "server"))
        self.assertEqual(self.total("mds_write_bytes", "export", exported), self.total("mds_write_bytes", "server"))
        self.assertGreater(self.total("operations", "client", client), 0)
        # What is not measured is null, not 0.
        self.assertIsNone(self.last("rdma_read_bytes", "export", exported))
        self.assertIsNone(self.last("operations", "brick", brick))

    def test_the_busiest_are_named(self):
        mount = self.cluster.mount()
        self.addCleanup(mount.close)

        def busy():
            with open(mount / "busy.bin", "wb") as file:
                file.write(b"x" * MIB)
            os.stat(mount / "busy.bin")
            top = self.root.get("/top").json
            return (any(file["path"] == "/busy.bin" and file["operations"] > 0 for file in top["files"])
                    and any(client["rdma_write_bytes"] for client in top["clients"]))

        wait_until(busy, 20, "the client and its file are among the busiest")
        top = self.root.get("/top").json
        self.assertLessEqual(len(top["files"]), 10)
        self.assertEqual(top["clients"][0]["id"], self.root.get("/clients").json["items"][0]["id"])

    def test_capacity_is_what_the_bricks_say_and_a_young_server_makes_no_forecast(self):
        capacity = self.root.get("/capacity").json
        brick = self.brick()
        self.assertEqual(capacity["capacity_bytes"], brick["capacity_bytes"])
        self.assertEqual(capacity["used_bytes"], brick["used_bytes"])
        self.assertEqual((capacity["outlook"], capacity["full_in_seconds"]), ("unknown", None))
        self.assertIn("needs an hour", capacity["text"])

    def test_a_brick_that_is_away_is_a_gap_and_its_return_no_leap(self):
        brick = self.brick()["id"]
        wait_until(lambda: self.history("brick", brick), 10, "the brick has a history")
        mount = self.cluster.mount("flush_after=0")
        self.addCleanup(mount.close)
        with open(mount / "file", "wb") as file:
            file.write(b"x" * MIB)
        told = mount.wait_until_quiet()["rdma_write_bytes"]
        self.assertGreater(told, 0)
        # The server asks the brick for its counters now and then.
        wait_until(lambda: self.brick()["counters"]["rdma_write_bytes"] >= told, 10, "the brick's counters are known")
        written = self.brick()["counters"]["rdma_write_bytes"]
        # Nobody has read: what the transport asks behind a write is none of the application's reads.
        self.assertEqual(self.brick()["counters"]["rdma_reads"], 0)
        # A server that begins anew knows nothing of before, and does not take it for news.
        self.cluster.stop("mds")
        self.cluster.start_mds()
        wait_until(lambda: self.history("brick", brick), 20, "the brick has a history again")
        time.sleep(3)
        self.assertEqual(self.brick()["counters"]["rdma_write_bytes"], written)
        samples = self.root.get("/throughput?seconds=600").json["samples"]
        self.assertEqual(sum(sample["rdma_write_bytes"] for sample in samples), 0)
        self.assertEqual(self.total("rdma_write_bytes", "server"), 0)
        self.assertEqual(self.total("rdma_write_bytes", "brick", brick), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
