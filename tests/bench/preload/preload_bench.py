#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""4 KiB reads and overwrites by the mount, under libpnfsrdma-preload.so and by libpnfsrdma, in turn.

usage: preload_bench.py BIN_DIRECTORY [ROUNDS [SECONDS]]      (release binaries; a C compiler)
"""
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "integration"))
import cluster  # noqa: E402

BIN = pathlib.Path(sys.argv[1]).resolve()
LIBRARIES = BIN.parent / "lib"
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
SECONDS = sys.argv[3] if len(sys.argv) > 3 else "0.7"
SOURCE = HERE / "one_at_a_time.c"
MIB = 1 << 20


def measure(program, file, action, way, threads, preload):
    descriptor = os.open(file, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(LIBRARIES)}
    if preload:
        environment["LD_PRELOAD"] = str(LIBRARIES / "libpnfsrdma-preload.so")
    done = subprocess.run([program, file, action, way, str(threads), SECONDS], env=environment, capture_output=True, text=True,
                          check=True, timeout=120)
    return [float(word) for word in done.stdout.split()]


def main():
    with cluster.Cluster(BIN).start_all() as servers:
        program = servers.home / "one_at_a_time"
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", f"-I{HERE.parents[2] / 'library'}", "-o", program, SOURCE, "-pthread",
                        LIBRARIES / "libpnfsrdma.so"], check=True)
        file = servers.mount() / "file"
        with open(file, "wb") as made:
            for _ in range(256):
                made.write(os.urandom(MIB))
        print(f"{'':7}{'threads':>8}  {'way':10}{'a second':>10}{'p50 us':>8}{': mount':>9}")
        for action in "read", "write":
            for threads in 1, 4, 16, 64:
                ways = {"mount": ("direct", False), "preload": ("direct", True), "library": ("library", False),
                        "buffered": ("buffered", False), "preload b.": ("buffered", True)}
                found = {name: [] for name in ways}
                for _ in range(ROUNDS):
                    for name, (way, preload) in ways.items():
                        found[name].append(measure(program, file, action, way, threads, preload))
                base = statistics.median(rate for rate, _ in found["mount"])
                for name, rows in found.items():
                    rate, p50 = (statistics.median(row[i] for row in rows) for i in (0, 1))
                    print(f"{action:7}{threads:>8}  {name:10}{rate:>10,.0f}{p50:>8.0f}{rate / base:>9.2f}", flush=True)


main()
