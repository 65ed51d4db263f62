#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the console costs the data: fio on a mount with and without so many API requests a second beside it.

Both in turn, round by round, in the same run and on the same mount; the order changes with each round. fio, mount,
brick and MDS share one CPU, so that whatever the MDS spends is taken from the data; who asks runs on another. Prints
each workload's medians and their ratio, and how the API answered meanwhile. The aim: at most 5 % less.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from cluster import Cluster  # noqa: E402
from console_client import Console  # noqa: E402

AIM = 0.95
# What pages and scrapers ask for; the block map is what the exposure page polls.
PATHS = ["/throughput?seconds=5", "/bricks", "/clients", "/layouts", "/health", "/events?limit=20", "/exports", "/jobs",
         "/bricks/{brick}/blocks", "/configuration"]
WORKLOADS = {
    "4 KiB random read, direct (IOPS)": (["--rw=randread", "--bs=4k", "--direct=1"], "read", "iops"),
    "4 KiB random write, direct (IOPS)": (["--rw=randwrite", "--bs=4k", "--direct=1"], "write", "iops"),
    "1 MiB sequential read, direct (MB/s)": (["--rw=read", "--bs=1m", "--direct=1"], "read", "bw_bytes"),
    "1 MiB sequential write, direct (MB/s)": (["--rw=write", "--bs=1m", "--direct=1"], "write", "bw_bytes"),
}
CONNECTIONS = 4


class Load:
    """`rate` GET requests a second over a few connections that stay, each at its time whatever the ones before took."""

    def __init__(self, socket, paths, rate, cpu):
        self.stop, self.seconds, self.failed = threading.Event(), [], []
        self.threads = [threading.Thread(target=self.ask, args=(socket, paths, rate / CONNECTIONS, number, cpu))
                        for number in range(CONNECTIONS)]
        self.begin = time.monotonic()
        for thread in self.threads:
            thread.start()

    def ask(self, socket, paths, rate, number, cpu):
        os.sched_setaffinity(0, {cpu})  # this thread
        connection = Console(socket).connection()
        turn = 0
        while not self.stop.is_set():
            wait = self.begin + turn / rate - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            begin = time.monotonic()
            connection.request("GET", "/api/v1" + paths[(turn + number) % len(paths)])
            answer = connection.getresponse()
            answer.read()
            self.seconds.append(time.monotonic() - begin)
            if answer.status != 200:
                self.failed.append(answer.status)
            turn += 1
        connection.close()

    def end(self):
        """Requests a second."""
        self.stop.set()
        for thread in self.threads:
            thread.join()
        return len(self.seconds) / (time.monotonic() - self.begin)


def fio(path, seconds, size, options, direction, key):
    command = ["fio", "--name=job", f"--filename={path}", f"--size={size}", "--ioengine=psync", "--time_based",
               f"--runtime={seconds}", "--output-format=json", *options]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result["jobs"][0][direction][key]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the folder with our programs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="of each workload")
    parser.add_argument("--rate", type=float, default=200, help="requests a second")
    parser.add_argument("--size", default="256m", help="of the file")
    parser.add_argument("--cpu", type=int, default=0, help="of fio and our programs")
    parser.add_argument("--load-cpu", type=int, default=1, help="of who asks the API")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {arguments.cpu})

    found = {name: {False: [], True: []} for name in WORKLOADS}
    rates, seconds, failed = [], [], []
    with Cluster(arguments.bin, pool_size="1G") as cluster:
        cluster.start_all()
        mount = cluster.mount()
        socket = cluster.home / "console.sock"
        brick = Console(socket).items("/bricks")[0]["id"]
        paths = [path.replace("{brick}", brick) for path in PATHS]
        subprocess.run(["fio", "--name=lay", f"--filename={mount / 'file'}", f"--size={arguments.size}", "--rw=write",
                        "--bs=1m", "--end_fsync=1", "--output-format=json"], check=True, capture_output=True)
        for number in range(arguments.rounds):
            for name, workload in WORKLOADS.items():
                for loaded in (number % 2 == 0, number % 2 == 1):
                    load = Load(socket, paths, arguments.rate, arguments.load_cpu) if loaded else None
                    found[name][loaded].append(fio(mount / "file", arguments.seconds, arguments.size, *workload))
                    if load:
                        rates.append(load.end())
                        seconds += load.seconds
                        failed += load.failed
            print(f"round {number + 1}/{arguments.rounds}", file=sys.stderr)
        mount.unmount()

    print(f"{'workload':<40}{'alone':>12}{'with API':>12}{'ratio':>8}")
    for name, values in found.items():
        scale = 1 if "IOPS" in name else 1e6
        alone, beside = (statistics.median(values[loaded]) for loaded in (False, True))
        ratio = beside / alone
        print(f"{name:<40}{alone / scale:>12,.0f}{beside / scale:>12,.0f}{ratio:>8.3f}"
              f"{'  ok' if ratio >= AIM else f'  below {AIM}'}")
    seconds.sort()
    print(f"API: {statistics.mean(rates):.0f} requests/s, p50 {seconds[len(seconds) // 2] * 1e3:.1f} ms, "
          f"p99 {seconds[len(seconds) * 99 // 100] * 1e3:.1f} ms, {len(failed)} not answered with 200")


if __name__ == "__main__":
    main()
