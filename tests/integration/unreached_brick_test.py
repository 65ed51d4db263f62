#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client that reaches the MDS but not the brick: its I/O goes through the MDS, and the server's administrator sees it.

The client is in a network namespace of its own, whose way to the brick's address can be closed and opened.
usage: unreached_brick_test.py BIN"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from cluster import Cluster, Mount, require_mounts, wait_until
from console_client import Console

NAMESPACE = f"pnfsrdma-{os.getpid()}"
HOST, BRICK, CLIENT = "10.213.7.1", "10.213.7.2", "10.213.7.3"
BLOCK = 1 << 20


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


class Network:
    """Two addresses of this host, and a client's namespace that reaches both."""

    def __enter__(self):
        near, far = f"pr{os.getpid() % 100000}a", f"pr{os.getpid() % 100000}b"
        ip("netns", "add", NAMESPACE)
        ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", NAMESPACE)
        for address in (HOST, BRICK):
            ip("address", "add", f"{address}/24", "dev", near)
        ip("link", "set", near, "up")
        ip("-n", NAMESPACE, "address", "add", f"{CLIENT}/24", "dev", far)
        for device in ("lo", far):
            ip("-n", NAMESPACE, "link", "set", device, "up")
        return self

    def __exit__(self, *_):
        ip("netns", "delete", NAMESPACE)  # the link goes with it

    @staticmethod
    def close_way():
        ip("-n", NAMESPACE, "route", "add", "unreachable", f"{BRICK}/32")

    @staticmethod
    def open_way():
        ip("-n", NAMESPACE, "route", "delete", "unreachable", f"{BRICK}/32")


class NamespaceMount(Mount):
    """A mount whose process has the client's network."""

    def command(self, port, options):
        return ["nsenter", f"--net=/run/netns/{NAMESPACE}", *super().command(port, options)]

    server = HOST


class UnreachedBrick(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.network = cls.enterClassContext(Network())
        cls.cluster = cls.enterClassContext(Cluster(BIN, pool_size="256M", pool_directory="/var/tmp"))
        for name, change in (("brick", cls.listen_everywhere), ("mds", cls.admit_everybody)):
            path = cls.cluster.home / f"{name}.json"
            values = json.loads(path.read_text())
            change(values)
            path.write_text(json.dumps(values))
        cls.cluster.start_all()
        cls.console = Console(cls.cluster.home / "console.sock")

    @classmethod
    def listen_everywhere(cls, values):
        values["data"] = {"listen": [f"0.0.0.0:{cls.cluster.data_port}"],
                          "advertise": [f"{BRICK}:{cls.cluster.data_port}"]}

    @classmethod
    def admit_everybody(cls, values):
        values["listen"] = [f"0.0.0.0:{cls.cluster.nfs_port}"]
        values["exports"][0]["clients"] = ["10.213.7.0/24"]

    def mount_anew(self):
        self.mount = NamespaceMount(self.cluster, "mount", "", self.cluster.nfs_port)
        self.cluster.mounts.append(self.mount)

    def check(self):
        checks = {check["name"]: check for check in self.console.get("/health").json["checks"]}
        return checks["paths"]

    def brick(self):
        return self.console.get("/bricks").json["items"][0]

    def read_all(self):
        subprocess.run(["dd", f"if={self.mount / 'file'}", "of=/dev/null", "bs=1M", "iflag=direct"], check=True,
                       capture_output=True)

    def test(self):
        self.mount_anew()
        (self.mount / "file").write_bytes(os.urandom(4 * BLOCK))
        self.read_all()
        self.assertEqual(self.check()["status"], "ok")
        self.assertEqual(self.brick()["unreached_by"], [])

        self.mount.unmount()
        self.network.close_way()
        self.mount_anew()
        self.read_all()
        self.read_all()
        self.assertGreaterEqual(self.mount.statistics()["mds_read_bytes"], 8 * BLOCK)
        wait_until(lambda: self.check()["status"] == "warning", 10, "the server knows that the client has no path")
        name = self.console.get("/clients").json["items"][0]["name"]
        self.assertIn(f"{name} does not reach brick", self.check()["detail"])
        self.assertIn("NFS4ERR_NXIO", self.check()["detail"])
        self.assertEqual(self.brick()["unreached_by"], [name])
        self.assertIn("pnfsrdma_brick_unreached_by", self.console.request("GET", "/metrics", prefix="").text)
        # Once an outage, not with each read.
        self.assertEqual(self.cluster.log("mds").count("path-broken"), 1)
        self.assertEqual(self.mount.statistics()["mds_operations"]["LAYOUTERROR"], 1)

        self.network.open_way()
        wait_until(self.reads_directly, 30, "reads go to the brick again")

    def reads_directly(self):
        before = self.mount.statistics()
        self.read_all()
        return self.mount.statistics()["rdma_read_bytes"] - before["rdma_read_bytes"] >= 4 * BLOCK


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1))
    require_mounts()
    if not shutil.which("ip") or not shutil.which("nsenter"):
        print("skipped: ip and nsenter (iproute2, util-linux) are needed")
        raise SystemExit(77)
    unittest.main(verbosity=2)
