# SPDX-License-Identifier: Apache-2.0
"""Single operations of libpnfsrdma and of librpma on device DAX, in turn, with nothing else on the machine."""
import json
import os
import statistics
import subprocess

from durable_writes import ADDRESS, theirs

THEIR_DAX = "/dev/dax1.0"  # on the other NVDIMM: the brick has the first one
ROUNDS = 20
SECONDS = "0.3"
# The row of pnfsrdma-bench, librpma's methods that promise the same, and what both are.
ROWS = [
    ("read 4 KiB", ("read",), "read of 4 KiB"),
    ("durable write 4 KiB", ("gpspm", "flush"), "durable write of 4 KiB"),
    ("durable 16 x 64 B", ("chain",), "16 x 64 B, one flush behind them"),
]


def ours(binaries, row):
    done = subprocess.run([str(binaries / "pnfsrdma-bench"), f"{ADDRESS}:/", "-o", "port=12049", "--row", row, "--json", "--size", "64",
                           "--seconds", SECONDS, "--rounds", "1"], check=True, text=True, stdout=subprocess.PIPE, timeout=300)
    return [report for report in map(json.loads, done.stdout.splitlines()) if report["depth"] == 1][0]


def library(binaries):
    if not os.access(binaries / "bench-rpma", os.X_OK):
        raise OSError("bench-rpma is not built: librpma-dev is missing in the tree")
    subprocess.run(["ndctl", "create-namespace", "-f", "-e", "namespace1.0", "-m", "devdax"], check=True, stdout=subprocess.DEVNULL)
    print(f"\nlibpnfsrdma, to the server, beside librpma over rxe0 to device DAX, one at a time, microseconds; medians of {ROUNDS} rounds,"
          " in turn;\nbeside the ratio to librpma's best method, the quartiles of the rounds' own ratios, and the ratio of the best rounds")
    print(f"{'':<36}{'librpma p50':>22}{'ours p50':>10}{'p99':>9}{'ratio':>7}{'quartiles':>12}{'best':>6}   aim")
    for row, methods, what in ROWS:
        mine, peers = [], {method: [] for method in methods}
        for _ in range(ROUNDS):
            mine.append(ours(binaries, row))
            for method in methods:
                peers[method].append(theirs(binaries, method, THEIR_DAX)["p50_us"])
        method = min(methods, key=lambda name: statistics.median(peers[name]))
        theirs_p50, our_p50 = statistics.median(peers[method]), statistics.median(each["p50_us"] for each in mine)
        low, _, high = statistics.quantiles([each["p50_us"] / peer for each, peer in zip(mine, peers[method])], n=4)
        best = min(each["p50_us"] for each in mine) / min(peers[method])
        p99 = statistics.median(each["p99_us"] for each in mine)
        print(f"{what:<36}{f'{theirs_p50:.1f} ({method})':>22}{our_p50:>10.1f}{p99:>9.1f}{our_p50 / theirs_p50:>7.2f}"
              f"{f'{low:.2f}-{high:.2f}':>12}{best:>6.2f}   <= 1.00", flush=True)
