# SPDX-License-Identifier: Apache-2.0
"""A pool file that is split into partitions, and bricks that serve them: real programs, no mounts."""
import json
import pathlib
import shutil
import signal
import subprocess
import tempfile

from cluster import answers, wait_until
from ports import free_port

MIB = 1 << 20
BLOCK = 2 * MIB


class Partitions:
    """A pool file with partitions, and a brick for each."""

    def __init__(self, bin_directory, lease_seconds=30):
        self.bin = pathlib.Path(bin_directory)
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="pnfsrdma-blocks."))
        self.pool = self.home / "pool.img"
        self.lease_seconds = lease_seconds
        self.bricks, self.control, self.data = {}, {}, {}
        self.command("format", "--size", "96M")

    def command(self, verb, *arguments, check=True):
        return subprocess.run([self.bin / "pnfsrdma-brickd", "partition", verb, "--pool", self.pool, *arguments],
                              capture_output=True, text=True, timeout=120, check=check)

    def create(self, name, size="32M", *more):
        self.command("create", "--name", name, "--size", size, "--key-file", self.key(name), *more)
        self.control[name], self.data[name] = free_port(), free_port()
        (self.home / f"{name}.json").write_text(json.dumps({
            "pool": {"path": str(self.pool), "partition": name, "durability": "process"},
            "control": {"unix": str(self.home / f"{name}.sock"), "tcp": f"127.0.0.1:{self.control[name]}"},
            "data": {"listen": [f"127.0.0.1:{self.data[name]}"], "rdma": []}, "lease_seconds": self.lease_seconds}))

    def key(self, name):
        return self.home / f"{name}.key"

    def log(self, name):
        return (self.home / f"{name}.log").read_text()

    def start(self, name):
        with open(self.home / f"{name}.log", "a", encoding="utf-8") as log:
            brick = subprocess.Popen([self.bin / "pnfsrdma-brickd", "--config", self.home / f"{name}.json"], stdout=log, stderr=log)
        self.bricks[name] = brick

        def is_up():
            if brick.poll() is not None:
                raise RuntimeError(self.log(name)[-3000:])
            return answers(self.control[name])
        wait_until(is_up, 60, f"{name} answers")

    def stop(self, name, how=signal.SIGTERM):
        brick = self.bricks.pop(name)
        brick.send_signal(how)
        assert brick.wait(60) in (0, -how), self.log(name)[-3000:]

    def check(self, name):
        checked = subprocess.run([self.bin / "pnfsrdma-brickd", "--config", self.home / f"{name}.json", "--check"],
                                 capture_output=True, text=True, timeout=60, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr

    def close(self):
        for name in list(self.bricks):
            self.stop(name, signal.SIGKILL)
        shutil.rmtree(self.home)
