#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our mount over iwarp beside a ceiling: an in-memory FUSE file system that makes one TCP round trip per operation.

All run the same workloads in turn, round by round, everything pinned to one CPU; medians and ratios are printed. `--rows data`: bytes.
`--rows names`: files, attributes, directories, trees, a database; ours with its metadata in memory and on a disk that syncs,
beside the ceiling with and without its round trip, sshfs and GlusterFS, if they are installed.
The ceiling's folder holds memfuse.cc (the file system) and bench.sh (the workloads).
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import mounts
from mounts import Memfuse, Ours

# job, key, what it is, and which share of the ceiling is aimed at (none: it is shown only)
DATA = [
    ("e_rread4k_qd1", "iops", "4 KiB random read, O_DIRECT, depth 1 (IOPS)", 0.7),
    ("f_rwrite4k_qd1", "iops", "4 KiB random write, O_DIRECT, depth 1 (IOPS)", 0.7),
    ("h_write4k_fsync", "iops", "4 KiB write + fsync (pairs/s)", 0.7),
    ("c_seqread_direct", "MBps", "1 MiB sequential read, O_DIRECT (MB/s)", 0.7),
    ("d_seqwrite_direct", "MBps", "1 MiB sequential write, O_DIRECT (MB/s)", 0.7),
    ("g_rread4k_8j", "iops", "4 KiB random read, 8 jobs (IOPS)", None),
    ("a_seqwrite_fsync", "MBps", "1 MiB buffered write + fsync (MB/s)", None),
    ("b_seqread_cold", "MBps", "1 MiB buffered read, cold (MB/s)", None),
]
NAMES = [
    ("i_create", "ops", "create (files/s)", 0.95),
    ("i_stat_warm", "ops", "stat, warm (files/s)", None),
    ("i_stat_cold", "ops", "stat, kernel cold (files/s)", None),
    ("i_readdir_cold", "ops", "readdir, kernel cold (entries/s)", 1.0),
    ("i_ls_l_cold", "ops", "readdir and lstat, kernel cold (entries/s)", None),
    ("i_open_close", "ops", "open + close (files/s)", 1.5),
    ("i_rename", "ops", "rename (files/s)", 0.8),
    ("i_unlink", "ops", "unlink (files/s)", 0.65),
    ("j_untar", "ops", "untar (files/s)", 0.95),
    ("j_find_stat_cold", "ops", "find -printf, kernel cold (files/s)", None),
    ("j_cat_all_cold", "ops", "read all, kernel cold (files/s)", None),
    ("j_git_init_add", "ops", "git init + add (files/s)", 0.95),
    ("j_git_status_warm", "ops", "git status, warm (files/s)", None),
    ("j_rm_rf", "ops", "rm -rf (files/s)", 0.65),
    ("k_sqlite_tx", "ops", "SQLite, synchronous=FULL (transactions/s)", 0.95),
]
ROWS = {"data": DATA, "names": NAMES}
SECTIONS = {"data": "seq rand fsync", "names": "meta tree sqlite"}
CEILING = "hop"


def run_workloads(script, name, directory, arguments):
    environment = dict(os.environ, RT=str(arguments.seconds), REPS="1", SIZE=arguments.size, NFILES=str(arguments.files),
                       TREE=str(arguments.tree))
    subprocess.run([str(script), str(directory), name, arguments.sections or SECTIONS[arguments.rows]], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


def medians(path, rows):
    values = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        entry = json.loads(line)
        if "error" in entry:
            print(f"{entry['sys']} {entry['job']}: {entry['error']}", file=sys.stderr)
            continue
        for job, key, _, _ in rows:
            if entry["job"] == job:
                values.setdefault(job, []).append(entry[key])
    return {job: statistics.median(v) for job, v in values.items()}


def report(found, rows, rounds):
    """What chart.py draws."""
    shown = []
    for job, _, what, _ in rows:
        if job in found["ours"] and job in found[CEILING]:
            words, _, unit = what.rstrip(")").rpartition(" (")
            shown.append({"what": words, "unit": unit, "ours": found["ours"][job], "reference": found[CEILING][job]})
    title = "The mount: names" if rows is NAMES else "The mount"
    return {"title": title, "reference": "an in-memory FUSE file system with one TCP round trip per operation",
            "conditions": f"One CPU, volatile pool, medians of {rounds} rounds; the right column is ours : reference", "rows": shown}


def print_table(found, rows):
    others = [name for name in found if name not in ("ours", CEILING)]
    peers = [name for name in mounts.PEERS if name in found]
    header = f"{'one CPU, volatile pool':<46}{'ours':>11}{CEILING:>11}{'ratio':>7}" + "".join(f"{name:>11}" for name in others)
    print("\n" + header + ("   ours : best peer" if peers else ""))
    for job, _, what, aim in rows:
        if job not in found["ours"] or job not in found[CEILING]:
            continue
        ours, ratio = found["ours"][job], found["ours"][job] / found[CEILING][job]
        line = f"{what:<46}{ours:>11,.0f}{found[CEILING][job]:>11,.0f}{ratio:>7.2f}"
        line += "".join(f"{found[name][job]:>11,.0f}" if job in found[name] else f"{'-':>11}" for name in others)
        of_peers = [found[name][job] for name in peers if job in found[name]]
        if of_peers:
            line += f"{ours / max(of_peers):>19.2f}"
        if aim:
            line += "  ok" if ratio >= aim else f"  below {aim}"
        print(line)


def systems(arguments, home, exits):
    """What is mounted, by name, in the order in which they take turns."""
    def add(name, system):
        exits.callback(system.close)
        mounted[name] = system.path
    mounted = {}
    add("ours", Ours(arguments.bin, arguments.pool, mounts.MEMORY if arguments.rows == "names" else None))
    add(CEILING, Memfuse(home, arguments.ceiling, hop=True))
    if arguments.rows == "names":
        add("disk", Ours(arguments.bin, arguments.pool, arguments.disk))
        add("memfuse", Memfuse(home, arguments.ceiling, hop=False))
        for name, peer in mounts.PEERS.items():
            if peer.WHY_NOT:
                print(f"{name} is left out: {peer.WHY_NOT}", file=sys.stderr)
            else:
                add(name, peer(home))
    return mounted


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the folder with our programs")
    parser.add_argument("--ceiling", type=pathlib.Path, required=True, help="the folder with memfuse.cc and bench.sh")
    parser.add_argument("--rows", choices=tuple(ROWS), default="data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3, help="of each timed workload")
    parser.add_argument("--size", default="512m", help="of the file")
    parser.add_argument("--files", type=int, default=5000, help="in one directory, with --rows names")
    parser.add_argument("--tree", type=int, default=1000, help="files of the tree, with --rows names")
    parser.add_argument("--pool", default="3G", help="size of the pool, in memory")
    parser.add_argument("--disk", default="/var/tmp", help="for the metadata of the second one of ours, with --rows names")
    parser.add_argument("--sections", help="of the workloads: part of what --rows measures")
    parser.add_argument("--json", type=pathlib.Path, help="write the results to this file, too: for chart.py")
    parser.add_argument("--cpu", type=int, default=0, help="everything runs on this CPU")
    return parser.parse_args()


def main():
    arguments = options()
    if not (arguments.ceiling / "bench.sh").exists():
        raise SystemExit(f"{arguments.ceiling} has no bench.sh: give the folder with the workloads by --ceiling")
    os.sched_setaffinity(0, {arguments.cpu})
    rows = ROWS[arguments.rows]
    home = pathlib.Path(tempfile.mkdtemp(prefix="pnfsrdma-bench."))
    for name in ("bench.sh", "metabench.c"):
        shutil.copy(arguments.ceiling / name, home / name)
    with contextlib.ExitStack() as exits:
        mounted = systems(arguments, home, exits)
        for number in range(arguments.rounds):
            for name, directory in mounted.items():
                begin = time.monotonic()
                run_workloads(home / "bench.sh", name, directory, arguments)
                print(f"round {number + 1}/{arguments.rounds} {name}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
    found = {name: medians(home / "results" / f"{name}.jsonl", rows) for name in mounted}
    print_table(found, rows)
    if arguments.json:
        arguments.json.write_text(json.dumps(report(found, rows, arguments.rounds), indent=2))
    shutil.rmtree(home)


if __name__ == "__main__":
    main()
