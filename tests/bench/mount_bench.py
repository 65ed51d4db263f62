#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our mount over iwarp beside a ceiling: an in-memory FUSE file system that makes one TCP round trip per operation.

Both run the same workloads in turn, round by round, everything pinned to one CPU; medians and their ratio are printed.
The ceiling's folder holds memfuse.cc (the file system) and bench.sh (the workloads); without it our own numbers are
printed alone.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from cluster import Cluster, wait_until  # noqa: E402

# job, key, what it is, whether the project holds itself to the aim
ROWS = [
    ("e_rread4k_qd1", "iops", "4 KiB random read, O_DIRECT, depth 1 (IOPS)"),
    ("f_rwrite4k_qd1", "iops", "4 KiB random write, O_DIRECT, depth 1 (IOPS)"),
    ("h_write4k_fsync", "iops", "4 KiB write + fsync (pairs/s)"),
    ("c_seqread_direct", "MBps", "1 MiB sequential read, O_DIRECT (MB/s)"),
    ("d_seqwrite_direct", "MBps", "1 MiB sequential write, O_DIRECT (MB/s)"),
    ("g_rread4k_8j", "iops", "4 KiB random read, 8 jobs (IOPS)"),
    ("a_seqwrite_fsync", "MBps", "1 MiB buffered write + fsync (MB/s)"),
    ("b_seqread_cold", "MBps", "1 MiB buffered read, cold (MB/s)"),
]
AIM = 0.7
AIMED = {row[0] for row in ROWS[:5]}


class Ceiling:
    """memfuse --hop, built into and run from a folder of ours."""

    def __init__(self, sources, home):
        self.home, self.path = home, home / "ceiling"
        self.path.mkdir()
        (home / "bin").mkdir()
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=True)
        subprocess.run(["g++", "-O2", "-w", "-std=c++17", str(sources / "memfuse.cc"), "-o", str(home / "bin" / "memfuse"),
                        *flags.stdout.split(), "-lpthread"], check=True)
        before = set(pathlib.Path("/tmp").glob("memfuse.hop.*"))
        self.process = subprocess.Popen([str(home / "bin" / "memfuse"), "--hop", "-f", str(self.path)])
        wait_until(lambda: os.path.ismount(self.path), 10, "memfuse is mounted")
        self.pid_files = set(pathlib.Path("/tmp").glob("memfuse.hop.*")) - before

    def close(self):
        subprocess.run(["umount", str(self.path)], check=False)
        self.process.wait(timeout=20)
        for file in self.pid_files:
            try:
                os.kill(int(file.read_text()), signal.SIGKILL)
            except ProcessLookupError:
                pass
            file.unlink()


def run_workloads(script, name, directory, seconds, size, sections):
    subprocess.run([str(script), str(directory), name, sections], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env=dict(os.environ, RT=str(seconds), REPS="1", SIZE=size))


def medians(path):
    values = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        entry = json.loads(line)
        if "error" in entry:
            print(f"{entry['sys']} {entry['job']}: {entry['error']}", file=sys.stderr)
            continue
        for job, key, _ in ROWS:
            if entry["job"] == job:
                values.setdefault(job, []).append(entry[key])
    return {job: statistics.median(v) for job, v in values.items()}


def report(ours, theirs, rounds):
    """What chart.py draws."""
    rows = []
    for job, _, what in ROWS:
        if job in ours and job in theirs:
            words, _, unit = what.rstrip(")").rpartition(" (")
            rows.append({"what": words, "unit": unit, "ours": ours[job], "reference": theirs[job]})
    return {"title": "The mount", "reference": "an in-memory FUSE file system with one TCP round trip per operation",
            "conditions": f"One CPU, volatile pool, medians of {rounds} rounds; the right column is ours : reference", "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the folder with our programs")
    parser.add_argument("--ceiling", type=pathlib.Path, required=True, help="the folder with memfuse.cc and bench.sh")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3, help="of each timed workload")
    parser.add_argument("--size", default="512m", help="of the file")
    parser.add_argument("--pool", default="3G", help="size of the pool, in memory")
    parser.add_argument("--sections", default="seq rand fsync")
    parser.add_argument("--json", type=pathlib.Path, help="write the results to this file, too: for chart.py")
    parser.add_argument("--cpu", type=int, default=0, help="everything runs on this CPU")
    arguments = parser.parse_args()
    if not (arguments.ceiling / "bench.sh").exists():
        raise SystemExit(f"{arguments.ceiling} has no bench.sh: give the folder with the workloads by --ceiling")

    os.sched_setaffinity(0, {arguments.cpu})
    home = pathlib.Path(tempfile.mkdtemp(prefix="pnfsrdma-bench."))
    for name in ("bench.sh", "metabench.c"):
        shutil.copy(arguments.ceiling / name, home / name)
    ceiling = Ceiling(arguments.ceiling, home)
    try:
        with Cluster(arguments.bin, pool_size=arguments.pool) as cluster:  # on tmpfs: volatile, as the ceiling is
            cluster.start_all()
            mount = cluster.mount()
            for number in range(arguments.rounds):
                for name, directory in (("ours", mount.path), ("ceiling", ceiling.path)):
                    begin = time.monotonic()
                    run_workloads(home / "bench.sh", name, directory, arguments.seconds, arguments.size, arguments.sections)
                    print(f"round {number + 1}/{arguments.rounds} {name}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
            mount.unmount()
    finally:
        ceiling.close()
    ours, theirs = medians(home / "results" / "ours.jsonl"), medians(home / "results" / "ceiling.jsonl")
    print(f"\n{'workload (one CPU, volatile pool)':<52}{'ours':>12}{'ceiling':>12}{'ratio':>8}")
    for job, _, what in ROWS:
        if job in ours and job in theirs:
            ratio = ours[job] / theirs[job]
            verdict = "" if job not in AIMED else ("  ok" if ratio >= AIM else f"  below {AIM}")
            print(f"{what:<52}{ours[job]:>12,.0f}{theirs[job]:>12,.0f}{ratio:>8.2f}{verdict}")
    if arguments.json:
        arguments.json.write_text(json.dumps(report(ours, theirs, arguments.rounds), indent=2))
    shutil.rmtree(home)


if __name__ == "__main__":
    main()
