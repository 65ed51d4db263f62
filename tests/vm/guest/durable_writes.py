# SPDX-License-Identifier: Apache-2.0
"""Durable writes of 4 KiB on device DAX: ours beside librpma's methods, in turn, with nothing else on the machine."""
import json
import os
import pathlib
import signal
import statistics
import subprocess
import time

ADDRESS = "10.77.0.1"
DAX = "/dev/dax0.0"
OPERATIONS = "500"
ROUNDS = 3

# key: (what it is, what its completion promises where the responder is software)
METHODS = {
    "apm": ("librpma APM: WRITE, READ of 8 bytes", "visible: no flush of CPU caches in software RDMA"),
    "gpspm": ("librpma GPSPM: WRITE, message, pmem flush, answer", "power"),
    "flush": ("librpma rpma_flush: WRITE, native FLUSH", "power"),
    "native_flush": ("ours: WRITE + native FLUSH", "power"),
    "commit_message": ("ours: WRITE + commit message", "power"),
}
THEIRS = ("apm", "gpspm", "flush")


def ours(binaries, home):
    """Both of our methods, on a brick that is made for it: {method: numbers}."""
    socket_path = home / "durable.sock"
    config = home / "durable.json"
    config.write_text(json.dumps({"pool": {"path": DAX}, "control": {"unix": str(socket_path)},
                                  "data": {"listen": [f"{ADDRESS}:12051"]}, "log_level": "warning"}))
    brickd = str(binaries / "pnfsrdma-brickd")
    subprocess.run([brickd, "--config", str(config), "--format", "--force"], check=True, stdout=subprocess.DEVNULL)
    brick = subprocess.Popen([brickd, "--config", str(config)])
    try:
        end = time.monotonic() + 60
        while not socket_path.exists():
            if time.monotonic() > end:
                raise TimeoutError("the brick has no control socket after 60 s")
            time.sleep(0.1)
        time.sleep(5)  # blocks are being zeroed in the background
        done = subprocess.run([str(binaries / "bench-brick"), "durable", "--control", str(socket_path), "--json",
                               "--operations", OPERATIONS], check=True, text=True, stdout=subprocess.PIPE, timeout=300)
    finally:
        brick.send_signal(signal.SIGTERM)
        brick.wait(60)
        socket_path.unlink(missing_ok=True)
    report = json.loads(done.stdout)
    return {method: report[method] for method in METHODS if method in report}


def theirs(binaries, method):
    program = str(binaries / "bench-rpma")
    with subprocess.Popen([program, "server", "--address", ADDRESS, "--dax", DAX], stdout=subprocess.PIPE, text=True) as server:
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
    home = pathlib.Path("/root")
    rounds = {method: [] for method in METHODS}
    for _ in range(ROUNDS):
        for method in THEIRS:
            rounds[method].append(theirs(binaries, method))
        for method, numbers in ours(binaries, home).items():
            rounds[method].append(numbers)
    print(f"\nDurable write of 4 KiB over rxe0 to device DAX, one at a time, microseconds; medians of {ROUNDS} rounds of {OPERATIONS}")
    print(f"{'':<52}{'mean':>9}{'p50':>9}{'p99':>9}   what it survives")
    for method, (what, promise) in METHODS.items():
        if not rounds[method]:
            print(f"{what:<52}   not offered here")
            continue
        numbers = [statistics.median(row[key] for row in rounds[method]) for key in ("mean_us", "p50_us", "p99_us")]
        print(f"{what:<52}" + "".join(f"{number:>9.1f}" for number in numbers) + f"   {promise}", flush=True)
