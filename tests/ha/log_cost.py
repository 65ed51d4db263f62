#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the log in etcd costs: files made a second with and without it, in turn in one run, and its bytes for each of them.

usage: log_cost.py BIN_DIRECTORY [--clients 1,100] [--rounds N] [--seconds N]

Two metadata servers of their own, each with a brick, below /var/tmp: one alone, one with a standby and three members of etcd.
The load is the row `create` of bench-server.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))
from cluster import Cluster, require_mounts, wait_until  # noqa: E402
from console_client import Console  # noqa: E402
from etcd import Etcd, require_etcd  # noqa: E402
from pair import Pair  # noqa: E402

VALUES = "pnfsrdma_mds_log_commit_seconds_count "
SECONDS = "pnfsrdma_mds_log_commit_seconds_sum "
BYTES = "pnfsrdma_mds_log_bytes_total "
FILES = 'pnfsrdma_mds_operations_total{operation="OPEN"} '


def numbers(server):
    """Of the log, and how many files were made."""
    lines = Console(server.home / "console.sock").get("/metrics", prefix="").text.splitlines()
    return [sum(float(line[len(name):]) for line in lines if line.startswith(name)) for name in (VALUES, SECONDS, BYTES, FILES)]


def load(asked, clients, alone, shared):
    with tempfile.NamedTemporaryFile(suffix=".json") as figures:
        subprocess.run([f"{asked.bin}/bench-server", f"alone=127.0.0.1:{alone.nfs_port}", f"log=127.0.0.1:{shared.nfs_port}",
                        "--rows", "create", "--clients", clients, "--rounds", str(asked.rounds), "--seconds", str(asked.seconds),
                        "--json-file", figures.name], check=True, stdout=sys.stderr)
        line = json.loads(pathlib.Path(figures.name).read_text())["lines"][0]
    return [line["servers"][name]["rate"] for name in ("alone", "log")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--clients", default="1,100")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    asked = parser.parse_args()
    require_mounts()
    require_etcd()
    tempfile.tempdir = "/var/tmp"  # not in memory
    etcd = Etcd()
    try:
        with Cluster(asked.bin, pool_directory="/var/tmp", insecure=True) as alone, Pair(asked.bin, etcd) as shared:
            alone.start_all()
            shared.start_all()
            wait_until(lambda: numbers(shared)[0] > 0, 30, "what the log costs is known")
            print("| clients | without, /s | with, /s | slower by | a value takes | values a file | bytes a file |\n|---|---|---|---|---|---|---|")
            for clients in asked.clients.split(","):
                before = numbers(shared)
                without, with_log = load(asked, clients, alone, shared)
                values, seconds, size, files = (after - was for after, was in zip(numbers(shared), before))
                print(f"| {clients} | {without:,.0f} | {with_log:,.0f} | {without / with_log:.1f} | {seconds / values * 1e3:.1f} ms | "
                      f"{values / files:.2f} | {size / files:,.0f} |", flush=True)
    finally:
        etcd.close()


if __name__ == "__main__":
    main()
