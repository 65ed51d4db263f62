#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints, as tables, what this machine's Soft-RoCE gives to us and to others, measured in turn in one run.

Our transport beside perftest; our mount beside the Linux kernel's NFSv4.2/RDMA client on knfsd. The medium is named with
each table; durable writes, and the library's operations, beside librpma's. Runs inside a lab machine after prepare.sh:
compare.py [transport|mount|durable|library ...]
"""
import contextlib
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import time

from durable_writes import durable
from library_operations import library

BIN = pathlib.Path(os.environ.get("PNFSRDMA_BIN", "/build/bin"))
ADDRESS = "10.77.0.1"
SIZES = [4096, 65536, 1 << 20]
ROUNDS = 3
TURNS = 9  # of each of the transport's numbers: some seconds each, and they differ by half


def run(*words, **options):
    options = {"stderr": subprocess.PIPE, **options}
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE, timeout=300, **options).stdout


def wait_for_port(port):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            socket.create_connection((ADDRESS, port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError(f"nothing answers on {ADDRESS}:{port}")


class Perftest:
    """ib_{read,write}_{bw,lat}, both ends here on a CPU each, connected by rdma_cm as ours are."""

    @classmethod
    def number(cls, program, size, iterations, *words):
        for attempt in range(3):  # a client that comes before the server listens is refused
            try:
                return cls.one_number(program, size, iterations, words)
            except subprocess.CalledProcessError:
                if attempt == 2:
                    raise
        return None

    @staticmethod
    def one_number(program, size, iterations, words):
        common = [program, "-R", "-F", "-s", str(size), "-n", str(iterations), "-p", "18515", *words]
        with subprocess.Popen(["taskset", "-c", "1", *common], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
            try:
                time.sleep(1)  # it listens, and has no port to ask: the port is rdma_cm's
                lines = run("taskset", "-c", "0", *common, ADDRESS, stderr=subprocess.STDOUT).splitlines()
                server.wait(30)
            finally:
                server.kill()
        row = [line.split() for line in lines if line.split()[:1] == [str(size)]][0]
        # bytes iterations peak average rate | bytes iterations min max typical average ...
        return float(row[3]) * (1 << 20) / 1e6 if program.endswith("_bw") else float(row[4])


# What is measured, our key for it, perftest's program and words, the aim.
COMPARED = [
    ("READ MB/s", "read_mb_s", "ib_read_bw", (), ">= 0.90"),
    ("READ us, polling", "read_polled_us", "ib_read_lat", (), "<= 1.15"),
    ("READ us, waiting", "read_us", "ib_read_lat", ("-e",), "<= 1.15"),
    ("WRITE MB/s", "write_mb_s", "ib_write_bw", (), ">= 0.90"),
    ("WRITE us, one way", "write_one_way_us", "ib_write_lat", (), "<= 1.15"),
]


def our_number(key, size, seconds):
    report = json.loads(run(str(BIN / "bench-transport"), "--transport", "verbs", "--pin", "two",
                            "--seconds", f"{seconds:.2f}", "--depth", "128", "--rounds", "1", "--measure", key, "--size", str(size), "--json"))
    return report["rows"][0][key]


def a_turn(key, program, words, size):
    """Theirs and ours, for the same time: the first operations of a program are its slowest."""
    iterations = min(1000, max(50, (25 << 20) // size))
    theirs = Perftest.number(program, size, iterations, *words)
    one = theirs / 1e6 if key.endswith("_us") else size / theirs / 1e6
    return theirs, our_number(key, size, max(0.5, iterations * one * (2 if key == "write_one_way_us" else 1)))


def transport():
    print(f"\nOne-sided operations over rxe0, both ends on this machine, a CPU each; memory: DRAM; medians of {TURNS} rounds, in"
          " turn.\nA latency is the median of its round; beside the ratio, the quartiles of the rounds' own ratios, and the ratio of"
          " the best\nrounds: what disturbs an emulated machine only makes it slower.")
    print("(Polling: the completion queue is asked without rest. Waiting: ours spins and then sleeps, perftest -e sleeps at"
          " once.\n One way: half a ping-pong of WRITEs.)")
    print(f"{'':<20}{'bytes':>9}{'perftest':>12}{'ours':>12}{'ratio':>8}{'quartiles':>14}{'best':>8}   aim")
    for what, key, program, words, aim in COMPARED:
        for size in SIZES:
            pairs = [a_turn(key, program, words, size) for _ in range(TURNS)]
            theirs, mine = (statistics.median(side) for side in zip(*pairs))
            best = min if key.endswith("_us") else max
            best_ratio = best(ours for _, ours in pairs) / best(peer for peer, _ in pairs)
            low, _, high = statistics.quantiles([ours / peer for peer, ours in pairs], n=4)
            print(f"{what:<20}{size:>9}{theirs:>12.1f}{mine:>12.1f}{mine / theirs:>8.2f}{f'{low:.2f}-{high:.2f}':>14}"
                  f"{best_ratio:>8.2f}   {aim}", flush=True)


class Ours:
    """Brick on device DAX, MDS and mount, if it is wanted; data by verbs."""
    name, path = "ours", pathlib.Path("/mnt/ours")

    def __init__(self, with_mount=True):
        self.with_mount = with_mount

    def __enter__(self):
        home = pathlib.Path("/root/compare")
        (home / "mds").mkdir(parents=True, exist_ok=True)
        self.path.mkdir(exist_ok=True)
        (home / "brick.json").write_text(json.dumps({
            "pool": {"path": "/dev/dax0.0"}, "control": {"unix": f"{home}/brick.sock"}, "data": {"listen": [f"{ADDRESS}:20051"]}}))
        (home / "mds.json").write_text(json.dumps({
            "listen": [f"{ADDRESS}:12049"], "rdma_listen": [f"{ADDRESS}:20050"], "data_directory": f"{home}/mds",
            "bricks": [f"unix:{home}/brick.sock"],
            "exports": [{"path": "/", "root_squash": False, "clients": [f"{ADDRESS}"]}]}))
        run(str(BIN / "pnfsrdma-brickd"), "--config", f"{home}/brick.json", "--format", "--force")
        self.daemons = []
        for name, port in (("brick", 20051), ("mds", 12049)):
            log = open(f"/out/compare.{name}.log", "w")
            self.daemons.append(subprocess.Popen([str(BIN / f"pnfsrdma-{name}d"), "--config", f"{home}/{name}.json"],
                                                 stdout=log, stderr=log))
            wait_for_port(port)
        if not self.with_mount:
            time.sleep(5)  # blocks are being zeroed in the background
            return self
        with open("/out/compare.fuse.log", "w") as log:  # not by a pipe: the mount keeps running
            subprocess.run([str(BIN / "pnfsrdma-fuse"), "-o", "proto=rdma", f"{ADDRESS}:20050:/", str(self.path)], check=True,
                           stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=120)
        return self

    def medium(self):
        return "device DAX; " + os.getxattr(self.path, "user.pnfsrdma.transport").decode()

    def __exit__(self, *_):
        if self.with_mount:
            subprocess.run(["umount", str(self.path)], check=False)
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(60)


class Kernel:
    """knfsd on ext4-DAX on the other NVDIMM, and the kernel's NFSv4.2 client over RPC-over-RDMA."""
    name, path = "kernel NFS/RDMA", pathlib.Path("/mnt/kernel")

    def __enter__(self):
        run("modprobe", "-a", "nfsd", "nfsv4", "rpcrdma")
        for folder in ("/srv/export", str(self.path)):
            os.makedirs(folder, exist_ok=True)
        run("ndctl", "create-namespace", "-f", "-e", "namespace1.0", "-m", "fsdax", "-M", "mem")
        run("mkfs.ext4", "-q", "-F", "-b", "4096", "/dev/pmem1")  # DAX wants blocks of a page
        run("mount", "-o", "dax", "/dev/pmem1", "/srv/export")
        run("mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd")
        run("exportfs", "-o", "rw,no_root_squash,fsid=0,insecure,no_subtree_check", "*:/srv/export")
        subprocess.Popen(["rpc.mountd", "--no-nfs-version", "3"])  # answers the kernel's questions about exports
        run("rpc.nfsd", "--no-nfs-version", "3", "--grace-time", "10", "4")
        pathlib.Path("/proc/fs/nfsd/portlist").write_text("rdma 20049\n")
        run("mount", "-t", "nfs4", "-o", "vers=4.2,proto=rdma,port=20049", f"{ADDRESS}:/", str(self.path))
        return self

    def medium(self):
        return "knfsd on ext4-DAX on an NVDIMM; proto=rdma"

    def __exit__(self, *_):
        subprocess.run(["umount", str(self.path)], check=False)
        subprocess.run(["rpc.nfsd", "0"], check=False)


JOBS = [
    ("4 KiB random read, O_DIRECT", "us", ["--rw=randread", "--bs=4k"]),
    ("4 KiB random write, O_DIRECT", "us", ["--rw=randwrite", "--bs=4k"]),
    ("4 KiB write + fdatasync", "us", ["--rw=randwrite", "--bs=4k", "--fdatasync=1"]),
    ("1 MiB sequential read, O_DIRECT", "MB/s", ["--rw=read", "--bs=1m"]),
    ("1 MiB sequential write, O_DIRECT", "MB/s", ["--rw=write", "--bs=1m"]),
]


def fio(path, words, unit):
    report = json.loads(run("fio", "--name=job", f"--filename={path}/file", "--size=64m", "--direct=1", "--ioengine=psync",
                            "--time_based=1", "--runtime=3", "--output-format=json", *words))["jobs"][0]
    side = report["read"] if report["read"]["io_bytes"] else report["write"]
    # Time per operation, its fdatasync included, by the number of operations done.
    return side["runtime"] * 1000 / side["total_ios"] if unit == "us" else side["bw_bytes"] / 1e6


def mount():
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(Ours())
        kernel = stack.enter_context(Kernel())
        sides = (kernel, ours)
        for side in sides:
            run("fio", "--name=lay", f"--filename={side.path}/file", "--size=64m", "--rw=write", "--bs=1m", "--end_fsync=1")
        print("\nMounts over rxe0, server and client on this machine")
        for side in sides:
            print(f"  {side.name}: {side.medium()}")
        print(f"{'':<36}{'':>6}{kernel.name:>17}{ours.name:>12}{'ratio':>8}")
        for what, unit, words in JOBS:
            values = {side.name: [] for side in sides}
            for _ in range(ROUNDS):
                for side in sides:
                    values[side.name].append(fio(side.path, words, unit))
            theirs, mine = (statistics.median(values[side.name]) for side in sides)
            print(f"{what:<36}{unit:>6}{theirs:>17.1f}{mine:>12.1f}{mine / theirs:>8.2f}", flush=True)
        print(json.dumps(json.loads(os.getxattr(ours.path, "user.pnfsrdma.statistics"))))


def operations_of_the_library():
    with Ours(with_mount=False):
        library(BIN)


def main():
    parts = {"transport": transport, "mount": mount, "durable": lambda: durable(BIN), "library": operations_of_the_library}
    failed = False
    for name in sys.argv[1:] or parts:
        began = time.monotonic()
        try:
            parts[name]()
            print(f"compare: {name} took {time.monotonic() - began:.0f} s", flush=True)
        except (OSError, subprocess.SubprocessError, LookupError, ValueError) as error:
            failed = True
            print(f"compare: {name}: {error}\n{getattr(error, 'stdout', '') or ''}{getattr(error, 'stderr', '') or ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
