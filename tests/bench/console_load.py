#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the console costs the data: fio on a mount with and without so many API requests a second beside it.

Without and with take turns of a second within one run of fio, so that both have the same memory, the same threads and
the same minute of the machine; each turn with is compared with the mean of the turns without before and after it. The
aim: at most 5 % less. What runs where, and why:

- fio, mount, brick and MDS share one CPU (--cpu), and fio keeps it busy: whatever the MDS spends on the API is taken
  from the data. With a second CPU for them the console's threads would run there: next to nothing to measure.
- Who asks stands for another machine, so it runs on another CPU (--load-cpu) and costs fio nothing of its own.

Prints of each workload the median of these comparisons and its quartiles; the CPU time that mount, brick and MDS took a
second, without and with the API; how the API answered meanwhile. With --cost: no fio, but the CPU time a request of
each kind costs.
"""
import argparse
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from cluster import Cluster, wait_until  # noqa: E402
from console_client import Console  # noqa: E402

AIM = 0.95
# What pages and scrapers ask for; the block map is what the exposure page polls.
PATHS = ["/throughput?seconds=5", "/bricks", "/clients", "/layouts", "/health", "/events?limit=20", "/exports", "/jobs",
         "/bricks/{brick}/blocks", "/configuration", "/history?range=24h", "/top", "/capacity"]
WORKLOADS = {
    "4 KiB random read": ["--rw=randread", "--bs=4k"],
    "4 KiB random write": ["--rw=randwrite", "--bs=4k"],
    "1 MiB sequential read": ["--rw=read", "--bs=1m"],
    "1 MiB sequential write": ["--rw=write", "--bs=1m"],
}
TURN = 1.0  # seconds without, then with
SETTLE = 0.1  # at the begin and at the end of a turn, not counted
CONNECTIONS = 4


class Asker:
    """One connection that stays, and no more work for an answer than to read it to its end."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))

    def get(self, path):
        """The status."""
        self.socket.sendall(f"GET /api/v1{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        read = self.socket.recv(1 << 16)
        while (end := read.find(b"\r\n\r\n")) < 0:
            read += self.socket.recv(1 << 16)
        length = int(re.search(rb"\r\ncontent-length: *(\d+)", read[:end], re.IGNORECASE)[1])
        while len(read) < end + 4 + length:
            read += self.socket.recv(1 << 16)
        return int(read.split(None, 2)[1])

    def close(self):
        self.socket.close()


class Load:
    """While on: `rate` GET requests a second over a few connections, each at its time whatever those before took."""

    def __init__(self, where, paths, rate, cpu):
        self.seconds, self.failed = [], []
        self.on, self.ended, self.begin = threading.Event(), False, 0.0
        self.threads = [threading.Thread(target=self.run, args=(Asker(where), paths, rate, number, cpu))
                        for number in range(CONNECTIONS)]
        for thread in self.threads:
            thread.start()

    def run(self, asker, paths, rate, number, cpu):
        os.sched_setaffinity(0, {cpu})  # this thread
        path = number  # the connections take turns
        while self.on.wait() and not self.ended:
            turn = number
            begin = self.begin
            while self.on.is_set():
                time.sleep(max(0, begin + turn / rate - time.monotonic()))
                self.ask(asker, paths[path % len(paths)])
                turn, path = turn + CONNECTIONS, path + CONNECTIONS - 1
        asker.close()

    def ask(self, asker, path):
        begin = time.monotonic()
        status = asker.get(path)
        self.seconds.append(time.monotonic() - begin)
        if status != 200:
            self.failed.append(status)

    def switch(self, on):
        self.begin = time.monotonic()
        self.on.set() if on else self.on.clear()

    def end(self):
        self.ended = True
        self.on.set()
        for thread in self.threads:
            thread.join()


class CpuTime:
    """Of the threads of each program, microseconds since it was made."""

    def __init__(self, pids):
        self.pids = pids
        self.before = self.now()

    def now(self):
        return {name: sum(self.of_thread(task) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1e3
                for name, pid in self.pids.items()}

    @staticmethod
    def of_thread(task):
        try:
            return int((task / "schedstat").read_text().split()[0])
        except OSError:  # it has ended meanwhile
            return 0

    def taken(self):
        return {name: after - self.before[name] for name, after in self.now().items()}


class Fio:
    """One run; what it had done by when, of its own log."""

    EVERY_MS = 20

    def __init__(self, path, folder, seconds, size, options):
        self.log = folder / "fio"
        self.process = subprocess.Popen(
            ["fio", "--name=job", f"--filename={path}", f"--size={size}", "--ioengine=psync", "--direct=1",
             "--time_based", f"--runtime={seconds}", "--output-format=json", f"--write_bw_log={self.log}", "--log_unix_epoch=1",
             f"--log_avg_msec={self.EVERY_MS}", *options], stdout=subprocess.DEVNULL)

    def samples(self):
        """(seconds since the epoch, KiB/s) when it has ended."""
        if self.process.wait() != 0:
            raise RuntimeError("fio failed")
        lines = (self.log.parent / (self.log.name + "_bw.1.log")).read_text().splitlines()
        return [(int(time_ms) / 1e3, int(rate)) for time_ms, rate, *_ in (line.split(",") for line in lines)]


class Turns:
    """Of one workload: turns without and with the API, and what fio did in each."""

    def __init__(self, fio, load, count, pids):
        self.borders, self.cpu = [], {False: [], True: []}
        time.sleep(1.5)  # fio has begun, and warmed up
        for number in range(2 * count + 1):
            with_api = number % 2 == 1
            load.switch(with_api)
            cpu_time, begin = CpuTime(pids), time.time()
            time.sleep(TURN)
            self.cpu[with_api].append(list(cpu_time.taken().values()))
            self.borders.append((begin + SETTLE, begin + TURN - SETTLE))
        load.switch(False)
        samples = fio.samples()
        self.rates = [statistics.mean(rate for time, rate in samples if begin < time <= end)
                      for begin, end in self.borders]

    def without(self):
        return statistics.median(self.rates[::2])

    def ratios(self):
        """Of each turn with to its neighbours without."""
        return [self.rates[i] / statistics.mean((self.rates[i - 1], self.rates[i + 1]))
                for i in range(1, len(self.rates), 2)]

    def cpu_a_second(self, with_api):
        """ms of each program."""
        return [statistics.median(column) / TURN / 1e3 for column in zip(*self.cpu[with_api])]


def print_cost(where, paths, rate, cpu, pids):
    """CPU time a request of each kind costs, asked alone and no faster than `rate`."""
    os.sched_setaffinity(0, {cpu})
    asker, count = Asker(where), 200
    print(f"{'CPU time of a request, us':<60}" + "".join(f"{name:>10}" for name in pids))
    for path in paths:
        asker.get(path)
        time.sleep(1)
        cpu_time, begin = CpuTime(pids), time.monotonic()
        for turn in range(count):
            time.sleep(max(0, begin + turn / rate - time.monotonic()))
            asker.get(path)
        print(f"{path:<60}" + "".join(f"{taken / count:>10.0f}" for taken in cpu_time.taken().values()), flush=True)
    asker.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the folder with our programs")
    parser.add_argument("--turns", type=int, default=15, help="with the API, of each workload, a second each")
    parser.add_argument("--rate", type=float, default=200, help="requests a second")
    parser.add_argument("--size", default="256m", help="of the file")
    parser.add_argument("--cpu", type=int, default=0, help="of fio and our programs")
    parser.add_argument("--load-cpu", type=int, default=1, help="of who asks the API")
    parser.add_argument("--cost", action="store_true", help="no fio: what a request of each kind costs")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {arguments.cpu})

    with Cluster(arguments.bin, pool_size="1G") as cluster:
        cluster.start_all()
        mount = cluster.mount()
        where = cluster.home / "console.sock"
        # It has no id before the MDS has reached it.
        wait_until(lambda: Console(where).items("/bricks")[0]["state"] == "ready", 20, "the brick is ready")
        brick = Console(where).items("/bricks")[0]["id"]
        paths = [path.replace("{brick}", brick) for path in PATHS]
        pids = {"mount": mount.process.pid, **{name: process.pid for name, process in cluster.processes.items()}}
        if arguments.cost:
            print_cost(where, paths, arguments.rate, arguments.load_cpu, pids)
            return mount.unmount()
        subprocess.run(["fio", "--name=lay", f"--filename={mount / 'file'}", f"--size={arguments.size}", "--rw=write",
                        "--bs=1m", "--end_fsync=1", "--output-format=json"], check=True, capture_output=True)
        load = Load(where, paths, arguments.rate, arguments.load_cpu)
        print(f"{'with the API : without':<26}{'median':>8}{'quartiles':>16}{'without, MB/s':>16}    "
              f"CPU ms a second of {', '.join(pids)}: without, with")
        for name, options in WORKLOADS.items():
            fio = Fio(mount / "file", cluster.home, (2 * arguments.turns + 3) * TURN, arguments.size, options)
            turns = Turns(fio, load, arguments.turns, pids)
            low, median, high = statistics.quantiles(turns.ratios(), n=4)
            cpu = ["/".join(f"{ms:.0f}" for ms in turns.cpu_a_second(with_api)) for with_api in (False, True)]
            print(f"{name:<26}{median:>8.3f}{f'{low:.3f}-{high:.3f}':>16}{turns.without() * 1024 / 1e6:>16,.0f}    "
                  f"{', '.join(cpu)}{'  ok' if median >= AIM else f'  below {AIM}'}", flush=True)
        load.end()
        mount.unmount()
    seconds = sorted(load.seconds)
    print(f"API: {len(seconds) / (len(WORKLOADS) * arguments.turns * TURN):.0f} requests/s, p50 "
          f"{seconds[len(seconds) // 2] * 1e3:.1f} ms, p99 {seconds[len(seconds) * 99 // 100] * 1e3:.1f} ms, "
          f"{len(load.failed)} not answered with 200")


if __name__ == "__main__":
    main()
