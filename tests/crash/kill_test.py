#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of brick, MDS or client at random moments of a write workload; then everything acknowledged must be there.

After each round: every synced grain is at least as new as acknowledged, no grain of another file or another place is
readable, the brick's table is sound, and the brick's blocks and the MDS's extents agree (`--check` of both).
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from cluster import Cluster  # noqa: E402
import workload  # noqa: E402

WORKERS = 3


def start_workers(cluster, mount, seed):
    script = pathlib.Path(__file__).with_name("workload.py")
    return [subprocess.Popen([sys.executable, str(script), str(mount.path), str(cluster.home / f"journal{w}"), str(w),
                              str(seed)], stderr=open(cluster.home / f"worker{w}.log", "a")) for w in range(WORKERS)]


def stop_workers(workers):
    for w in workers:
        w.kill()
    for w in workers:
        try:
            w.wait(timeout=60)
        except subprocess.TimeoutExpired as e:
            raise RuntimeError("a worker hangs in a system call on the mount") from e


def check_offline(cluster, problems):
    """Both daemons' own checks, with the brick up for the comparison of blocks and extents."""
    cluster.stop("mds")
    result = cluster.run("mdsd", "--config", str(cluster.home / "mds.json"), "--check", check=False)
    if result.returncode != 0:
        problems.append(f"mdsd --check: {result.stdout}{result.stderr}")
    cluster.stop("brick")
    result = cluster.run("brickd", "--config", str(cluster.home / "brick.json"), "--check", check=False)
    if result.returncode != 0:
        problems.append(f"brickd --check: {result.stdout}{result.stderr}")


def one_round(cluster, mount, number, seed):
    chance = random.Random(seed * 1000 + number)
    victim = chance.choice(["brick", "mds", "client", "both"])
    workers = start_workers(cluster, mount, seed * 1000 + number + 1)
    time.sleep(chance.uniform(0.2, 1.5))
    if victim == "client":
        mount.kill()
        stop_workers(workers)
    else:
        for name in (["mds", "brick"] if victim == "both" else [victim]):
            cluster.kill(name)
        time.sleep(chance.uniform(0, 0.3))
        if victim in ("brick", "both"):
            cluster.start_brick()
        if victim in ("mds", "both"):
            cluster.start_mds()
        time.sleep(chance.uniform(0, 1.0))
        stop_workers(workers)
        mount.kill()  # what the kernel has cached must not help the check
    fresh = cluster.mount(name=f"check{number}")
    problems = [p for w in range(WORKERS) for p in workload.verify(fresh.path, cluster.home / f"journal{w}", w)]
    if number % 10 == 9:
        fresh.unmount()
        check_offline(cluster, problems)
        cluster.start_brick()
        cluster.start_mds()
        fresh = cluster.mount(name=f"again{number}")
    synced = sum(1 for w in range(WORKERS) for line in open(cluster.home / f"journal{w}") if '"synced"' in line)
    print(f"round {number + 1}: killed {victim:<6}  {synced} synced writes so far, {len(problems)} problems", flush=True)
    return fresh, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int(time.time()) & 0xFFFF)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    with Cluster(arguments.bin, pool_size="512M", lease_seconds=3) as cluster:
        cluster.start_all()
        mount = cluster.mount()
        for number in range(arguments.rounds):
            mount, problems = one_round(cluster, mount, number, arguments.seed)
            if problems:
                print("\n".join(problems[:20]))
                raise SystemExit(f"{len(problems)} problems in round {number + 1} (seed {arguments.seed})")
        mount.unmount()
        problems = []
        check_offline(cluster, problems)
        if problems:
            raise SystemExit("\n".join(problems))
    print(f"{arguments.rounds} rounds: nothing acknowledged was lost")


if __name__ == "__main__":
    main()
