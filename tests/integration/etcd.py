# SPDX-License-Identifier: Apache-2.0
"""Three members of etcd on loopback, for tests of what shares a log in it."""
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

from cluster import wait_until
from ports import free_port


def require_etcd():
    """Ends the test as skipped where there is no etcd."""
    if shutil.which("etcd") is None:
        print("skipped: etcd is not installed (packaging/dependencies.sh test)")
        raise SystemExit(77)


class Etcd:
    def __init__(self, names=("m1", "m2", "m3")):
        self.home = tempfile.mkdtemp(prefix="pnfsrdma-etcd.")
        self.names = list(names)
        self.clients = {name: f"http://127.0.0.1:{free_port()}" for name in self.names}
        self.peers = {name: f"http://127.0.0.1:{free_port()}" for name in self.names}
        self.processes = {}
        for name in self.names:
            self.start(name)
        wait_until(self.healthy, 30, "etcd has a leader")

    @property
    def endpoints(self):
        return list(self.clients.values())

    def start(self, name):
        with open(f"{self.home}/{name}.log", "a") as log:
            self.processes[name] = subprocess.Popen(
                ["etcd", "--name", name, "--data-dir", f"{self.home}/{name}", "--logger", "zap",
                 "--listen-client-urls", self.clients[name], "--advertise-client-urls", self.clients[name],
                 "--listen-peer-urls", self.peers[name], "--initial-advertise-peer-urls", self.peers[name],
                 "--initial-cluster", ",".join(f"{each}={url}" for each, url in self.peers.items())],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def healthy(self):
        try:
            return all(b'"true"' in urllib.request.urlopen(f"{url}/health", timeout=3).read() for url in self.endpoints)
        except (urllib.error.URLError, OSError):
            return False

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait()

    def close(self):
        for process in self.processes.values():
            process.kill()
            process.wait()
        shutil.rmtree(self.home, ignore_errors=True)
