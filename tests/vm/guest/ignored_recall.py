#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of the MDS ignores a recall and writes on; another one, our mount, truncates the file. By the clock of the machine:
from the MDS's decision to revoke (its log) to the first refused WRITE; and nothing of the file changes afterwards.

usage: ignored_recall.py BIN MOUNT MDS_ADDRESS MDS_LOG LEASE_SECONDS [ROUNDS]
"""
import datetime
import mmap
import os
import pathlib
import re
import subprocess
import sys
import time


def decision(log, seen):
    """Of the newest "layout-revoked" line behind the first `seen`: seconds since 1970."""
    lines = [line for line in log.read_text().splitlines() if "layout-revoked" in line]
    if len(lines) <= seen:
        raise ValueError("the MDS has not revoked anything")
    stamp = re.search(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}\.\d+", lines[-1])
    return datetime.datetime.fromisoformat(stamp[0].replace(" ", "T")).timestamp(), len(lines)


def read_direct(path, length):
    buffer = mmap.mmap(-1, length)
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        os.preadv(file, [buffer], 0)
        return buffer[:]
    finally:
        os.close(file)


def one_round(number, binaries, mount, mds, log, lease, seen):
    name = f"ignored-{number}"
    with open(mount / name, "wb") as file:
        file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())
    with subprocess.Popen([f"{binaries}/bench-brick", "ignore-recall", "--mds", mds, "--file", name], stdout=subprocess.PIPE,
                          text=True) as client:
        try:
            if client.stdout.readline().strip() != "writing":
                raise ValueError("the client does not come to write")
            begin = time.monotonic()
            os.truncate(mount / name, 128 << 10)  # recalls; is answered when the client can reach nothing any more
            truncated = time.monotonic()
            before = read_direct(mount / name, 128 << 10)
            time.sleep(0.5)
            after = read_direct(mount / name, 128 << 10)
            said = dict(line.split() for line in client.communicate(timeout=60)[0].splitlines())
        finally:
            client.kill()
    if client.returncode != 0:
        raise ValueError(f"the client ended with {client.returncode}")
    offset = time.time_ns() - time.monotonic_ns()
    decided, seen = decision(log, seen)
    refused = (int(said["refused"]) + offset) / 1e9
    waited = (int(said["refused"]) - int(said["recalled"])) / 1e9
    print(f"recall to refusal {waited:.3f} s; decision to refusal {1000 * (refused - decided):.1f} ms; truncate {truncated - begin:.3f} s")
    problems = []
    if int(said["last-success-posted"]) / 1e9 > truncated:
        problems.append("a WRITE was taken after the truncate was answered")
    if before != after:
        problems.append("bytes changed after the truncate was answered")
    if not lease - 0.5 <= waited <= lease + 2:
        problems.append(f"the client was refused {waited:.3f} s after the recall; one lease is {lease} s")
    return problems, 1000 * (refused - decided), seen


def main():
    binaries, mount, mds, log, lease = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], pathlib.Path(sys.argv[4]), float(sys.argv[5])
    rounds = int(sys.argv[6]) if len(sys.argv) > 6 else 5
    seen, all_problems, times = 0, [], []
    for number in range(rounds):
        problems, took, seen = one_round(number, binaries, mount, mds, log, lease, seen)
        all_problems += problems
        times.append(took)
    times.sort()
    print(f"decision to first refused WRITE: p50 {times[len(times) // 2]:.1f} ms, longest {times[-1]:.1f} ms, {rounds} rounds")
    for problem in all_problems:
        print("failed:", problem)
    return 1 if all_problems else 0


if __name__ == "__main__":
    sys.exit(main())
