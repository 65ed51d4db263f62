#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two metadata servers that share a log in etcd, for the browser's test of the page Cluster: requests as of cluster_service.py.

usage: pair_service.py BIN_DIRECTORY WEB_DIRECTORY
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]
from authority import Authority  # noqa: E402
from cluster import answers, wait_until  # noqa: E402
from cluster_service import answer_requests  # noqa: E402
from etcd import Etcd  # noqa: E402
from pair import Pair  # noqa: E402
from ports import free_port  # noqa: E402

SECONDS = 120
FENCED = 3


class Service:
    """Its bricks are controlled by a Unix socket, by TLS, and by TCP without it."""

    def __init__(self, bin_directory, web_directory):
        self.etcd = Etcd(("mds", "mds2", "witness"))
        self.cluster = Pair(bin_directory, self.etcd, bricks=3)
        home = self.cluster.home
        authority = Authority(home, "ca")
        authority.issue("brick2", "serverAuth")
        authority.issue("mds", "clientAuth")
        addresses = {name: f"tcp:127.0.0.1:{free_port()}" for name in ("brick2", "brick3")}
        for name, tls in (("brick2", authority.files("brick2")), ("brick3", {})):
            self.change(name, control={"unix": "", "tcp": addresses[name].removeprefix("tcp:"), **({"tls": tls} if tls else {})})
        for name, socket in (("mds", "console.sock"), ("mds2", "console2.sock")):
            self.change(name, bricks=[f"unix:{home}/brick.sock", *addresses.values()],
                        brick_tls=authority.files("mds") | {"plain": [addresses["brick3"]]},
                        console={"listen": [f"127.0.0.1:{self.cluster.console_port}"] if name == "mds" else [],
                                 "web_directory": web_directory, "socket": str(home / socket)})

    def change(self, name, **members):
        path = self.cluster.home / f"{name}.json"
        self.cluster.write_config(name, json.loads(path.read_text()) | members)

    def start(self):
        self.cluster.start_all()
        wait_until(lambda: answers(self.cluster.console_port), SECONDS, "the console answers")
        return {"port": self.cluster.console_port}

    def read(self, path):
        return pathlib.Path(path).read_text().strip()

    def write(self, files):
        """So that there is something in the log."""
        mount = self.cluster.mount()
        for number in range(files):
            (mount.path / f"file-{number}").write_text("some text")
        mount.unmount()

    def kill(self, name):
        self.cluster.kill(name)

    def follow(self, name):
        self.cluster.launch(name)
        self.cluster.wait_for(name, "standby", count=2, seconds=SECONDS)

    def kill_member(self, name):
        self.etcd.kill(name)

    def start_member(self, name):
        self.etcd.start(name)

    def wait_until_fenced(self, name):
        process = self.cluster.processes[name]
        wait_until(lambda: process.poll() is not None, SECONDS, f"{name} ends")
        if process.returncode != FENCED:
            raise RuntimeError(f"{name} ended with {process.returncode}, not with {FENCED}")

    def serve_again(self, name):
        self.cluster.launch(name)
        self.cluster.wait_for(name, "ready", count=2, seconds=SECONDS)

    def log(self, name):
        return self.cluster.log(name)[-20000:]

    def close(self):
        try:
            self.cluster.close()
        finally:
            self.etcd.close()


if __name__ == "__main__":
    answer_requests(Service(*sys.argv[1:]))
