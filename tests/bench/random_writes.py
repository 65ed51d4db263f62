#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random 4 KiB writes to a sparse file through a mount: the registrations that the brick has for it, and the space that the file
takes, after each tenth of them.

usage: random_writes.py BIN_DIRECTORY [--writes N] [--gib N] [--pool-directory DIRECTORY]
"""
import argparse
import os
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
from cluster import Cluster  # noqa: E402
from console_client import Console  # noqa: E402

PAGE, UNIT = 4096, 16384


def registrations(cluster):
    """Of all mounts together, as the brick tells them; about a second old."""
    return sum(brick["grants"] for brick in Console(cluster.home / "console.sock").get("/bricks").json["items"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--writes", type=int, default=1_000_000)
    parser.add_argument("--gib", type=float, default=2, help="of the file, at least; the pool has a quarter more")
    parser.add_argument("--pool-directory", default="/var/tmp")
    arguments = parser.parse_args()
    size = int(arguments.gib * (1 << 30))
    dice = random.Random(15)
    units = set()
    print(f"{'writes':>10} {'written':>10} {'taken':>10} {'registrations':>14} {'us a write':>11}")
    with Cluster(arguments.bin, pool_size=f"{size // 4 * 5 >> 20}M", pool_directory=arguments.pool_directory) as cluster:
        cluster.start_all()
        mount = cluster.mount()
        descriptor = os.open(mount / "sparse", os.O_RDWR | os.O_CREAT, 0o644)
        os.ftruncate(descriptor, size)
        data = os.urandom(PAGE)
        registrations(cluster)
        for tenth in range(1, 11):
            begun = time.monotonic()
            for _ in range(arguments.writes // 10):
                at = dice.randrange(size // PAGE) * PAGE
                units.add(at // UNIT)
                os.pwrite(descriptor, data, at)
            spent = time.monotonic() - begun
            os.fdatasync(descriptor)
            time.sleep(2.5)
            taken = os.fstat(descriptor).st_blocks * 512
            print(f"{arguments.writes // 10 * tenth:>10,} {len(units) * UNIT >> 20:>6,} MiB {taken >> 20:>6,} MiB "
                  f"{registrations(cluster):>14,} {spent / (arguments.writes // 10) * 1e6:>11.1f}", flush=True)
        os.close(descriptor)
        mount.unmount()
    return 0


if __name__ == "__main__":
    sys.exit(main())
