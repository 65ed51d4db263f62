# SPDX-License-Identifier: Apache-2.0
"""Two MDSs that share a log in etcd, on loopback."""
import json
import os
import subprocess

from cluster import START_SECONDS, Cluster, wait_until
from cut_proxy import CutProxy
from ports import free_port


def start_daemon(cluster, name, **environment):
    """The MDS of NAME.json, without waiting."""
    with open(cluster.home / f"{name}.log", "a") as log:
        cluster.processes[name] = subprocess.Popen(
            [cluster.program("mdsd"), "--config", str(cluster.home / f"{name}.json")], stdout=log, stderr=log,
            stdin=subprocess.DEVNULL, env=os.environ | environment)


def wait_for_event(cluster, name, event, count, seconds):
    """Until its log has that event so often."""
    def logged():
        if cluster.processes[name].poll() is not None:
            raise RuntimeError(f"{name} ended with {cluster.processes[name].returncode}:\n{cluster.log(name)[-3000:]}")
        return cluster.log(name).count(f"mds: {event} ") >= count
    wait_until(logged, seconds, f"{name} logs {event}")


class Pair(Cluster):
    """The MDSs "mds" and "mds2", and the address that clients know, which is moved as a floating address is."""

    def __init__(self, bin_directory, etcd, **options):
        # "mds" reaches etcd by these, so that it can be cut off from there and from nothing else.
        self.ways = [CutProxy(int(endpoint.rsplit(":", 1)[1]), one_way_seconds=0) for endpoint in etcd.endpoints]
        super().__init__(bin_directory, pool_size="512M", insecure=True, **options,
                         metadata_log={"endpoints": [f"http://127.0.0.1:{way.port}" for way in self.ways], "name": "mds"})
        config = json.loads((self.home / "mds.json").read_text())
        self.ports = {"mds": self.nfs_port, "mds2": free_port()}
        (self.home / "mds2").mkdir()
        self.write_config("mds2", config | {
            "listen": [f"127.0.0.1:{self.ports['mds2']}", f"127.0.0.2:{self.nfs_port}"], "rdma_listen": [],
            "data_directory": str(self.home / "mds2"),
            "metadata_log": {"endpoints": etcd.endpoints, "name": "mds2"},
            "console": {"socket": str(self.home / "console2.sock"), "listen": []}})
        self.address = CutProxy(self.ports["mds"])

    def launch(self, name, **environment):
        start_daemon(self, name, **environment)

    def wait_for(self, name, event, count=1, seconds=START_SECONDS):
        wait_for_event(self, name, event, count, seconds)

    def start_all(self):
        self.format()
        for brick in self.bricks:
            self.start_brick(brick)
        self.launch("mds")
        self.wait_for("mds", "ready")
        self.launch("mds2")
        self.wait_for("mds2", "standby")
        return self

    def mount(self, options="", name=None):
        return super().mount(options, name, port=self.address.port, proto="tcp")

    def move_address(self, name):
        self.address.target_port = self.ports[name]
        self.address.cut()

    def close(self):
        try:
            super().close()
        finally:
            self.address.close()
            self.end("mds2")
            for way in self.ways:
                way.close()
