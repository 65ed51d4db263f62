# SPDX-License-Identifier: Apache-2.0
"""Durable writes of 4 KiB on device DAX: ours beside librpma's methods, in turn, with nothing else on the machine."""
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import time

ADDRESS = "10.77.0.1"
DAX = "/dev/dax0.0"
OPERATIONS = "300"
ROUNDS = 30  # the pace of one differs from the next by half

# key: (what it is, what its completion promises where the responder is software)
METHODS = {
    "apm": ("librpma APM: WRITE, READ of 8 bytes", "visible: no flush of CPU caches in software RDMA"),
    "gpspm": ("librpma GPSPM: WRITE, message, pmem flush, answer", "power"),
    "flush": ("librpma rpma_flush: WRITE, native FLUSH", "power"),
    "native_flush": ("ours: WRITE + native FLUSH", "power"),
    "commit_message": ("ours: WRITE + commit message", "power"),
}
THEIRS = ("apm", "gpspm", "flush")


class Ours:
    """Both of our methods, each on a brick that is started for it, on a pool that is made once."""

    def __init__(self, binaries, home):
        self.binaries, self.socket, self.config = binaries, home / "durable.sock", home / "durable.json"
        self.config.write_text(json.dumps({"pool": {"path": DAX}, "control": {"unix": str(self.socket)},
                                           "data": {"listen": [f"{ADDRESS}:12051"]}, "log_level": "warning"}))
        subprocess.run([*self.brickd(), "--format", "--force"], check=True, stdout=subprocess.DEVNULL)
        with self.brick():
            time.sleep(5)  # blocks are being zeroed in the background

    def brickd(self):
        return [str(self.binaries / "pnfsrdma-brickd"), "--config", str(self.config)]

    @contextlib.contextmanager
    def brick(self):
        brick = subprocess.Popen(self.brickd())
        try:
            end = time.monotonic() + 60
            while not self.socket.exists():
                if time.monotonic() > end:
                    raise TimeoutError("the brick has no control socket after 60 s")
                time.sleep(0.1)
            yield
        finally:
            brick.send_signal(signal.SIGTERM)
            brick.wait(60)
            self.socket.unlink(missing_ok=True)

    def measure(self, method):
        with self.brick():
            done = subprocess.run([str(self.binaries / "bench-brick"), "durable", "--control", str(self.socket), "--json",
                                   "--operations", OPERATIONS, "--method", method],
                                  check=True, text=True, stdout=subprocess.PIPE, timeout=300)
        return json.loads(done.stdout).get(method)  # none where it is not offered


def theirs(binaries, method, dax=DAX):
    program = str(binaries / "bench-rpma")
    with subprocess.Popen([program, "server", "--address", ADDRESS, "--dax", dax], stdout=subprocess.PIPE, text=True) as server:
        try:
            said = server.stdout.readline()
            if not said.startswith("listening"):
                raise ValueError("bench-rpma's server does not listen")
            done = subprocess.run([program, "client", "--address", ADDRESS, "--method", method, "--operations", OPERATIONS],
                                  check=True, text=True, stdout=subprocess.PIPE, timeout=300)
            server.wait(30)
        finally:
            server.kill()
    return json.loads(done.stdout)


def durable(binaries):
    if not os.access(binaries / "bench-rpma", os.X_OK):
        raise OSError("bench-rpma is not built: librpma-dev is missing in the tree")
    brick = Ours(binaries, pathlib.Path("/root"))
    rounds = {method: [] for method in METHODS}
    for _ in range(ROUNDS):
        for method in METHODS:
            numbers = theirs(binaries, method) if method in THEIRS else brick.measure(method)
            if numbers:
                rounds[method].append(numbers)
    print(f"\nDurable write of 4 KiB over rxe0 to device DAX, one at a time, microseconds; medians of {ROUNDS} rounds of {OPERATIONS},"
          " in turn;\np50 beside GPSPM's, the quartiles of the rounds' own ratios, and the ratio of the best rounds")
    print(f"{'':<52}{'mean':>9}{'p10':>9}{'p50':>9}{'p99':>9}{'ratio':>7}{'quartiles':>12}{'best':>6}   what it survives")
    for method, (what, promise) in METHODS.items():
        if not rounds[method]:
            print(f"{what:<52}   not offered here")
            continue
        numbers = [statistics.median(row[key] for row in rounds[method]) for key in ("mean_us", "p10_us", "p50_us", "p99_us")]
        ratios = [row["p50_us"] / peer["p50_us"] for row, peer in zip(rounds[method], rounds["gpspm"])]
        best = min(row["p50_us"] for row in rounds[method]) / min(peer["p50_us"] for peer in rounds["gpspm"])
        low, _, high = statistics.quantiles(ratios, n=4)
        ratio = numbers[2] / statistics.median(peer["p50_us"] for peer in rounds["gpspm"])
        print(f"{what:<52}" + "".join(f"{number:>9.1f}" for number in numbers) +
              f"{ratio:>7.2f}{f'{low:.2f}-{high:.2f}':>12}{best:>6.2f}   {promise}", flush=True)
