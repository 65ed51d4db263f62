#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster for the browser's test: one JSON request a line on stdin, one JSON answer a line on stdout.

usage: cluster_service.py BIN_DIRECTORY WEB_DIRECTORY
request {"do": NAME, ...}; answer {"value": ...} or {"error": TEXT}. The end of stdin ends everything.
"""
import json
import os
import pathlib
import subprocess
import sys
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
from cluster import Cluster, OpenFile, answers, free_port, wait_until  # noqa: E402

LOAD_ENDS_SECONDS = 120


class Service:
    """Daemons without a device and with an export that nobody wants: the rest is made in the browser."""

    def __init__(self, bin_directory, web_directory):
        self.cluster = Cluster(bin_directory)
        self.loads = {}
        self.files = []
        self.bricks = {}
        config = json.loads((self.cluster.home / "mds.json").read_text())
        config |= {"bricks": [], "exports": [{"path": "/old"}],
                   "console": {"listen": [f"127.0.0.1:{self.cluster.console_port}"], "web_directory": web_directory,
                               "socket": str(self.cluster.home / "console.sock")}}
        self.cluster.write_config("mds", config)

    def start(self):
        self.cluster.format()
        self.cluster.start_brick()
        self.cluster.start_mds()
        wait_until(lambda: answers(self.cluster.console_port), 60, "the console answers")
        return {"port": self.cluster.console_port, "brick": f"unix:{self.cluster.home}/brick.sock"}

    def another_brick(self):
        """A second, empty brick; returns its address."""
        home = self.cluster.home / f"brick{len(self.bricks) + 2}"
        home.mkdir()
        port = free_port()
        config = {"pool": {"path": str(self.cluster.pool_directory / f"{home.name}.img"), "size": "256M"},
                  "control": {"unix": str(home / "brick.sock")}, "data": {"listen": [f"127.0.0.1:{port}"]}}
        (home / "brick.json").write_text(json.dumps(config))
        command = [self.cluster.program("brickd"), "--config", str(home / "brick.json")]
        subprocess.run([*command, "--format"], check=True, capture_output=True, timeout=60)
        self.bricks[home.name] = None
        return self.start_brick(home.name)

    def start_brick(self, name):
        home = self.cluster.home / name
        config = json.loads((home / "brick.json").read_text())
        port = int(config["data"]["listen"][0].rsplit(":", 1)[1])
        with open(self.cluster.home / f"{name}.log", "a") as log:
            self.bricks[name] = subprocess.Popen(
                [self.cluster.program("brickd"), "--config", str(home / "brick.json")], stdout=log, stderr=log,
                stdin=subprocess.DEVNULL)
        wait_until(lambda: answers(port), 60, f"{name} answers")
        return f"unix:{home}/brick.sock"

    def stop_brick(self, name):
        self.bricks[name].terminate()
        return self.bricks[name].wait(timeout=60)

    def read(self, path):
        return pathlib.Path(path).read_text().strip()

    def mount(self):
        self.mounted = self.cluster.mount()
        return str(self.mounted.path)

    def statistics(self):
        return self.mounted.statistics()

    def write(self, name, mebibytes):
        """A file written and held open: its layout stays."""
        self.files.append(OpenFile(self.mounted / name))
        self.files[-1].write(os.urandom(mebibytes << 20))
        self.files[-1].fsync()

    def begin_load(self, name):
        self.loads[name] = subprocess.Popen([sys.executable, str(HERE / "load.py"), str(self.mounted / name)],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self.loads[name].pid

    def end_load(self, name):
        # A word, not the end of its stdin: the processes that hold files open inherited a copy of that pipe.
        output, _ = self.loads.pop(name).communicate("stop\n", timeout=LOAD_ENDS_SECONDS)
        return json.loads(output)

    def log(self, name):
        return self.cluster.log(name)[-20000:]

    def close(self):
        for load in self.loads.values():
            load.kill()
            load.wait()
        for file in self.files:
            try:
                file.close()
            except OSError:
                pass  # of a client that was expelled
        try:
            self.cluster.close()
        finally:
            for brick in self.bricks.values():
                brick.terminate()
                brick.wait(timeout=60)


def answer_requests(service):
    try:
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = {"value": getattr(service, request.pop("do"))(**request)}
            except Exception as error:  # told to the test, which decides
                traceback.print_exc()
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), flush=True)
    finally:
        service.close()


if __name__ == "__main__":
    answer_requests(Service(*sys.argv[1:]))
