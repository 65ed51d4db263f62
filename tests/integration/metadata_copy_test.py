#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A metadata server whose store is empty, or that the log does not reach any more, begins with a copy of the other's.

usage: metadata_copy_test.py BIN_DIRECTORY
"""
import base64
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

from cluster import require_mounts, wait_until
from etcd import Etcd, require_etcd
from pair import Pair
from ports import free_port

BIN = sys.argv.pop(1)
SECONDS = 60


def make_certificates(folder):
    """An authority, and one certificate of it for both servers."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority", "-days", "9")
    openssl("req", *key, "-keyout", "mds.key", "-out", "mds.csr", "-subj", "/CN=mds")
    openssl("x509", "-req", "-in", "mds.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "mds.pem",
            "-days", "9", "-extfile", "names")
    return {"ca_file": str(folder / "ca.pem"), "certificate": str(folder / "mds.pem"), "key": str(folder / "mds.key")}


class Copies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        require_mounts()
        require_etcd()

    def setUp(self):
        self.etcd = Etcd()
        self.addCleanup(self.etcd.close)
        self.cluster = Pair(BIN, self.etcd)
        self.addCleanup(self.cluster.close)
        self.files = make_certificates(self.cluster.home)
        self.copies = {}
        for name in ("mds", "mds2"):
            config = json.loads((self.cluster.home / f"{name}.json").read_text())
            self.copies[name] = free_port()
            config["metadata_log"] |= self.files | {"copies": f"127.0.0.1:{self.copies[name]}"}
            self.cluster.write_config(name, config)

    def configure_third(self):
        """As the second one, with places of its own."""
        cluster = self.cluster
        config = json.loads((cluster.home / "mds2.json").read_text())
        (cluster.home / "mds3").mkdir()
        cluster.ports["mds3"] = free_port()
        cluster.write_config("mds3", config | {
            "listen": [f"127.0.0.1:{cluster.ports['mds3']}"], "data_directory": str(cluster.home / "mds3"),
            "metadata_log": config["metadata_log"] | {"name": "mds3", "copies": f"127.0.0.1:{free_port()}"},
            "console": {"socket": str(cluster.home / "console3.sock"), "listen": []}})
        self.addCleanup(lambda: cluster.end("mds3"))

    def ask_etcd(self, path, request):
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in request.items()}
        asked = urllib.request.Request(f"{self.etcd.endpoints[0]}/v3/kv/{path}", json.dumps(encoded).encode())
        return json.loads(urllib.request.urlopen(asked, timeout=10).read())

    def start_alone(self):
        """The first server has served before there was a log."""
        cluster = self.cluster
        config = json.loads((cluster.home / "mds.json").read_text())
        cluster.write_config("mds", config | {"metadata_log": {}})
        cluster.format()
        cluster.start_brick()
        cluster.start_mds()
        mount = cluster.mount()
        (mount / "before").write_text("the log")
        mount.unmount()
        cluster.stop("mds")
        cluster.write_config("mds", config)
        cluster.launch("mds")
        cluster.wait_for("mds", "ready", count=2)

    def snapshot(self, *arguments, socket="console.sock"):
        return subprocess.run([f"{BIN}/pnfsrdma", "--socket", str(self.cluster.home / socket), "snapshot", *arguments],
                              capture_output=True, text=True, timeout=60, check=True).stdout

    def test_a_server_that_misses_something_takes_a_copy(self):
        cluster = self.cluster
        self.start_alone()
        mount = cluster.mount()
        self.snapshot("create", "monday")
        (mount / "behind").write_text("the snapshot")
        # An empty store.
        cluster.launch("mds2")
        cluster.wait_for("mds2", "copy-taken", seconds=SECONDS)
        cluster.wait_for("mds2", "standby", seconds=SECONDS)
        self.assertIn("copy-given to=127.0.0.1", cluster.log("mds"))
        # It was away for longer than the log reaches back: as its window does when it is full.
        cluster.stop("mds2")
        (mount / "away").write_text("for long")
        values = self.ask_etcd("range", {"key": "/pnfsrdma/log/", "range_end": "/pnfsrdma/log0"})["kvs"]
        last = base64.b64decode(values[-1]["key"]).decode()
        self.ask_etcd("put", {"key": "/pnfsrdma/trimmed", "value": str(int(last.rsplit("/", 1)[1], 16))})
        self.ask_etcd("deleterange", {"key": "/pnfsrdma/log/", "range_end": last + "\0"})
        cluster.launch("mds2")
        cluster.wait_for("mds2", "copy-taken", count=2, seconds=SECONDS)
        self.assertIn("this server was away for too long", cluster.log("mds2"))
        cluster.wait_for("mds2", "standby", count=3, seconds=SECONDS)
        self.assertTrue((cluster.home / "mds2" / "metadata.replaced").is_dir())
        self.assertFalse((cluster.home / "mds2" / "metadata.copy").exists())
        wait_until(lambda: not (cluster.home / "mds" / "metadata.given").exists(), SECONDS, "the leader has nothing left of it")
        # It takes over with all there is, snapshots included.
        (mount / "last").write_text("of all")
        cluster.kill("mds")
        cluster.move_address("mds2")
        cluster.wait_for("mds2", "ready", seconds=SECONDS)
        self.assertEqual((mount / "last").read_text(), "of all")
        self.assertEqual(sorted(os.listdir(mount.path)), ["away", "before", "behind", "last"])
        self.assertIn("monday", self.snapshot("list", socket="console2.sock"))
        self.assertEqual(os.listdir(pathlib.Path(mount.path) / ".snapshots" / "monday"), ["before"])
        mount.unmount()
        cluster.stop("mds2")
        checked = cluster.run("mdsd", "--config", str(cluster.home / "mds2.json"), "--check", check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def write_on(self, mount):
        """Makes files until the test ends, so that the log goes on."""
        ends = threading.Event()

        def write():
            number = 0
            while not ends.is_set():
                (mount / f"busy{number % 50}").write_text(str(number))
                number += 1
        thread = threading.Thread(target=write)
        thread.start()

        def end():
            ends.set()
            thread.join()
        self.addCleanup(end)
        return end

    def trimmed(self):
        found = self.ask_etcd("range", {"key": "/pnfsrdma/trimmed"}).get("kvs")
        return int(base64.b64decode(found[0]["value"])) if found else 0

    def test_a_new_server_beside_two_gets_a_copy_that_takes_long(self):
        cluster = self.cluster
        self.configure_third()
        self.start_alone()
        mount = cluster.mount()
        self.snapshot("create", "monday")
        cluster.launch("mds2")
        cluster.wait_for("mds2", "standby", seconds=SECONDS)
        # As long as a large store takes; the two others have all of the log meanwhile.
        for snapshot in (cluster.home / "mds" / "metadata" / "snapshots").iterdir():
            (snapshot / "padding").write_bytes(bytes(400 << 20))
        end_writing = self.write_on(mount)
        cluster.launch("mds3")
        cluster.wait_for("mds", "copy-begun", count=2, seconds=SECONDS)
        cluster.signal("mds3", signal.SIGSTOP)
        before = self.trimmed()
        time.sleep(13)  # twice trimmed, but for the third
        cluster.signal("mds3", signal.SIGCONT)
        cluster.wait_for("mds3", "standby", seconds=SECONDS)
        self.assertEqual(cluster.log("mds3").count("copy-taken"), 1)
        self.assertNotIn("away for too long", cluster.log("mds3"))
        self.assertGreaterEqual(cluster.log("mds").count("copy-given"), 2)
        # And the log is trimmed again, behind all three.
        wait_until(lambda: self.trimmed() > before, SECONDS, "the log is trimmed behind the third")
        # Who can reach the port of copies does not hold up the end of the server.
        silent = [socket.create_connection(("127.0.0.1", self.copies["mds"]), timeout=5) for _ in range(30)]
        begun = time.monotonic()
        cluster.signal("mds", signal.SIGTERM)
        wait_until(lambda: "leading" in cluster.log("mds2") + cluster.log("mds3"), 10, "another one leads")
        self.assertLess(time.monotonic() - begun, 10)
        for one in silent:
            one.close()
        self.assertEqual(cluster.processes["mds"].wait(timeout=SECONDS), 0)
        cluster.move_address("mds2" if "leading" in cluster.log("mds2") else "mds3")
        end_writing()
        mount.unmount()

    def test_who_needs_a_copy_waits_for_a_leader(self):
        cluster = self.cluster
        self.start_alone()
        cluster.stop("mds")
        cluster.launch("mds2")
        cluster.wait_for("mds2", "copy-waits", seconds=SECONDS)
        cluster.stop("mds2")  # in order
        cluster.launch("mds2")
        cluster.wait_for("mds2", "copy-waits", count=2, seconds=SECONDS)
        cluster.launch("mds")
        cluster.wait_for("mds", "ready", count=3)
        cluster.wait_for("mds2", "standby", seconds=SECONDS)
        # What it had was empty.
        self.assertFalse((cluster.home / "mds2" / "metadata.replaced").exists())

    def test_metadata_of_its_own_are_not_given_up(self):
        cluster = self.cluster
        self.start_alone()
        config = json.loads((cluster.home / "mds2.json").read_text())
        cluster.write_config("mds2", config | {"metadata_log": {}, "bricks": []})
        cluster.launch("mds2")
        cluster.wait_for("mds2", "ready")
        cluster.stop("mds2")
        cluster.write_config("mds2", config)
        cluster.launch("mds2")
        self.assertEqual(cluster.processes["mds2"].wait(timeout=SECONDS), 1)
        self.assertIn("began with the metadata of another server", cluster.log("mds2"))
        self.assertNotIn("copy-wanted", cluster.log("mds2"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
