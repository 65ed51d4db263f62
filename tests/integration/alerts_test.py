#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A brick dies: the alert fires, is told to a webhook, acknowledged, kept over a restart of the MDS, and resolved.

usage: alerts_test.py BIN_DIRECTORY
"""
import hashlib
import hmac
import http.server
import json
import subprocess
import sys
import threading
import unittest

from cluster import Cluster, wait_until
from console_client import Console

BIN = sys.argv.pop(1)
SECRET = "sixteen or more characters"
NOT_FOUND, CONFLICT = 5, 6  # exit codes


class Receiver:
    """Somebody else's HTTP server: the first message is refused."""

    def __init__(self):
        self.messages, self.attempts, self.forged = [], [], 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
                receiver.forged += not hmac.compare_digest(signature, self.headers.get("X-Pnfsrdma-Signature", ""))
                receiver.attempts.append(body)
                refused = len(receiver.attempts) == 1
                if not refused:
                    receiver.messages.append(json.loads(body))
                self.send_response(503 if refused else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/in"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def told(self, status):
        """The alerts of this status about the brick."""
        return [alert for message in list(self.messages) for alert in message["alerts"]
                if alert["status"] == status and alert["labels"]["alertname"] == "PnfsrdmaBrickAway"]


class Alerts(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(BIN, lease_seconds=10).start_all()
        self.addCleanup(self.cluster.close)
        self.root = Console(self.cluster.home / "console.sock")
        self.receiver = Receiver()
        self.addCleanup(self.receiver.close)

    def command(self, *words):
        return subprocess.run([f"{BIN}/pnfsrdma", "--socket", str(self.cluster.home / "console.sock"), *words],
                              capture_output=True, text=True, timeout=60)

    def done(self, *words):
        ended = self.command(*words)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def brick(self):
        """Once it is ready: before that it has no id."""
        wait_until(lambda: self.root.get("/bricks").json["items"][0]["state"] == "ready", 60, "the brick is ready")
        return self.root.get("/bricks").json["items"][0]

    def away(self):
        """The newest alert about the brick."""
        found = [alert for alert in self.root.get("/alerts").json["items"] if alert["rule"] == "PnfsrdmaBrickAway"]
        return found[0] if found else {"state": None}

    def test_a_brick_that_dies_and_comes_back(self):
        brick = self.brick()
        self.done("brick", "rename", brick["address"], "rack1")
        put = self.root.request("PUT", "/webhook", {"url": self.receiver.url, "secret": SECRET})
        self.assertEqual(put.status, 200, put.text)
        self.assertNotIn(SECRET, put.text + self.root.get("/webhook").text)

        self.cluster.kill("brick")
        wait_until(lambda: self.away()["state"] == "pending", 60, "the alert is pending")
        self.assertFalse(self.away()["needs_attention"])
        pending = self.command("alert", "acknowledge", str(self.away()["id"]))
        self.assertEqual(pending.returncode, CONFLICT, pending.stderr)
        wait_until(lambda: self.away()["state"] == "firing", 120, "the alert fires")
        alert = self.away()
        self.assertTrue(alert["needs_attention"])
        self.assertEqual((alert["summary"], alert["subject"]), ("The brick rack1 is unreachable", brick["id"]))

        # Refused once, sent again: the same message, signed.
        wait_until(lambda: self.receiver.told("firing"), 60, "the webhook is told that it fires")
        self.assertEqual(self.receiver.attempts[0], self.receiver.attempts[1])
        told = self.receiver.told("firing")[0]
        self.assertEqual(told["labels"]["brick"], brick["id"])
        self.assertEqual(told["annotations"]["summary"], alert["summary"])
        status = self.root.get("/webhook").json["status"]
        self.assertEqual((status["failures"], status["dropped"]), (1, 0))
        self.assertIn("503", status["failure"])

        number = str(alert["id"])
        self.assertIn("The brick rack1 is unreachable", self.done("alert", "list"))
        self.done("alert", "acknowledge", number, "--comment", "it is being repaired", "--for", "2h")
        self.assertIn("acknowledged", self.done("alert", "list"))
        self.assertIn("it is being repaired", self.done("alert", "show", number))
        self.assertEqual(self.command("alert", "show", "999").returncode, NOT_FOUND)
        self.assertIn("it is being repaired", self.root.get("/audit").json["items"][0]["summary"])

        # A restart forgets nothing, and tells nobody again of what is acknowledged.
        before = self.away()
        self.cluster.stop("mds")
        self.cluster.start_mds()
        after = json.loads(self.done("--json", "alert", "show", number))
        for member in ("id", "state", "needs_attention"):
            self.assertEqual(after[member], before[member])
        self.assertEqual(after["acknowledged"]["comment"], before["acknowledged"]["comment"])

        self.cluster.start_brick()
        wait_until(lambda: self.away()["state"] == "resolved", 60, "the alert is resolved")
        wait_until(lambda: self.receiver.told("resolved"), 60, "the webhook is told that it is over")
        self.assertEqual(len(self.receiver.told("firing")), 1)
        self.assertEqual(self.receiver.forged, 0)
        self.assertNotIn("The brick rack1 is unreachable", self.done("alert", "list"))
        self.assertIn("The brick rack1 is unreachable", self.done("alert", "list", "--all"))
        self.assertNotIn(SECRET, self.cluster.log("mds"))
        for name in ("alert-fired", "alert-resolved", "webhook-failed", "webhook-recovered"):
            self.assertIn(name, self.cluster.log("mds"))

    def test_bricks_are_called_by_their_names(self):
        brick = self.brick()
        self.done("device", "rename", brick["id"][:8], "rack 1.left")
        self.assertIn("rack 1.left", self.done("brick", "list"))
        self.assertIn("rack 1.left", self.done("device", "list"))
        self.assertEqual(json.loads(self.done("--json", "brick", "show", "rack 1.left"))["id"], brick["id"])
        self.assertIn("rack 1.left", self.done("device", "show", "rack 1.left"))
        self.assertIn("rack 1.left", self.done("completion", "words", "--", "--socket", str(self.cluster.home / "console.sock"),
                                               "brick", "show", "r"))
        self.assertNotEqual(self.command("brick", "rename", "rack 1.left", "a/b").returncode, 0)
        self.done("brick", "rename", "rack 1.left", "")
        self.assertEqual(self.command("brick", "show", "rack 1.left").returncode, NOT_FOUND)


if __name__ == "__main__":
    unittest.main()
