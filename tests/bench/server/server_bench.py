#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our metadata server beside NFS-Ganesha (VFS) under the same load: rates, latencies, ratios, and our loop's turns.

Both get a folder on the same medium, and answer a change of the namespace when it is on it: README.md beside this file says
how. With --pin all programs of a server share one processor, and the generator has another one.

What is not listed below goes to the generator: --rows, --clients, --rounds, --seconds, --open, ... (`bench-server --help`).
Exit code: 0, 1 when a server failed or answered an error, 2 for bad arguments, 77 when root or a program is missing.
"""
import argparse
import atexit
import contextlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "integration"))
sys.path.insert(0, str(HERE.parent))
import loop_turns  # noqa: E402
import ganesha  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from same_durability import folder_that_flushes  # noqa: E402

DISK, TMPFS = "/var/tmp", "/dev/shm"
AIM_PINNED, AIM_FREE = 2, 1  # times Ganesha's rate


class Ours(Cluster):
    """A brick and an MDS below `folder`, without a mount; its exports take calls from any port."""

    def __init__(self, bin_directory, folder, pool_size, **mds_options):
        tempfile.tempdir = str(folder)  # the cluster's home, and with it the metadata
        # More clients than there are reserved ports.
        super().__init__(bin_directory, pool_size=pool_size, pool_directory=folder, insecure=True, **mds_options)

    def turns(self):
        return loop_turns.read(self.home / "console.sock")

    def slow_turns(self):
        """What the MDS has logged of turns above 100 ms."""
        return [line for line in self.log("mds").splitlines() if " slow-turn " in line]

    def resident_mib(self):
        return {name: resident_mib(process.pid) for name, process in self.processes.items()}


def resident_mib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def be_nice(value):
    """The programs of this script. Where the kernel groups processes by session, nice(2) counts within the session only."""
    os.nice(value)
    group = pathlib.Path("/proc/self/autogroup")
    if value and group.exists():
        before = group.read_text().split()[-1]
        group.write_text(str(value))
        atexit.register(group.write_text, before)


def start_ganesha(folder, durable):
    server = ganesha.Ganesha(None, folder)
    if durable:
        # Without it Ganesha answers CREATE, REMOVE, ... before they are on the disk; folders below inherit it.
        subprocess.run(["chattr", "+D", str(server.path)], check=True)
    return server.start()


def print_turns(before, after):
    """Of our MDS while it was measured: how many turns of its loop took how long."""
    counts = loop_turns.between(before, after)
    total = max(1, sum(count for _, count in counts))
    print(f"\nturns of our MDS's loop meanwhile: {total:,}")
    print(f"{'at most':>10}{'turns':>14}{'share':>10}")
    for border, count in counts:
        if count:
            name = "longer" if border == float("inf") else f"{border * 1e3:g} ms"
            print(f"{name:>10}{count:>14,}{count / total:>10.4%}")
    return [{"seconds_max": border, "turns": count} for border, count in counts]


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the folder with our programs and the generator")
    parser.add_argument("--medium", choices=("disk", "tmpfs"), default="disk", help=f"disk: {DISK}, tmpfs: {TMPFS}")
    parser.add_argument("--folder", help="another one for both servers' data, instead of --medium")
    parser.add_argument("--pin", action="store_true", help="servers on one processor, the generator on another")
    parser.add_argument("--cpu", type=int, default=0, help="of the servers, with --pin")
    parser.add_argument("--load-cpu", type=int, default=1, help="of the generator, with --pin")
    parser.add_argument("--nice", type=int, default=0, help="of servers and generator: -20 where others work on the machine")
    parser.add_argument("--only", choices=("ours", "ganesha"), help="one server")
    parser.add_argument("--pool-size", default="2G", help="of our brick")
    parser.add_argument("--not-durable", action="store_true",
                        help="Ganesha may answer changes of the namespace before they are on the disk, as is its way")
    parser.add_argument("--json-file", help="all figures, and the loop's turns")
    return parser.parse_known_args()


def run_generator(arguments, passed, targets, json_file):
    command = [f"{arguments.bin}/bench-server", *targets, *passed, "--json-file", json_file]
    if len(targets) > 1:
        command += ["--aim", str(AIM_PINNED if arguments.pin else AIM_FREE)]
    if arguments.pin:
        os.sched_setaffinity(0, {arguments.load_cpu})  # inherited
    return subprocess.run(command, stdin=subprocess.DEVNULL).returncode


def measure(arguments, passed, ours, theirs):
    targets, processes = [], []
    if ours:
        targets.append(f"ours=127.0.0.1:{ours.nfs_port}")
        processes += [f"--process=ours={process.pid}" for process in ours.processes.values()]
    if theirs:
        targets.append(f"ganesha=127.0.0.1:{theirs.nfs_port}")
        processes.append(f"--process=ganesha={theirs.process.pid}")
    before = ours.turns() if ours else []
    with tempfile.NamedTemporaryFile(suffix=".json") as figures:
        code = run_generator(arguments, processes + passed, targets, figures.name)
        report = json.loads(pathlib.Path(figures.name).read_text() or "{}")
    if code == 0 and ours:
        report["turns"] = print_turns(before, ours.turns())
        for line in ours.slow_turns():
            print("  " + line)
        report["resident_mib"] = {name: round(mib) for name, mib in ours.resident_mib().items()}
        print("\nresident afterwards, MiB: " + ", ".join(f"{name} {mib:.0f}" for name, mib in ours.resident_mib().items()))
    if arguments.json_file:
        pathlib.Path(arguments.json_file).write_text(json.dumps(report, indent=1) + "\n")
    return code


def main():
    arguments, passed = options()
    if os.geteuid() != 0:
        print("skipped: root is needed (Ganesha, and reserved files)")
        return 77
    if arguments.only != "ours" and ganesha.PROGRAM is None:
        print(f"skipped: {ganesha.WHY_NOT}; --only ours measures without it")
        return 77
    folder = arguments.folder or (TMPFS if arguments.medium == "tmpfs" else DISK)
    durable = arguments.medium == "disk" and not arguments.not_durable
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    be_nice(arguments.nice)
    if arguments.pin:
        os.sched_setaffinity(0, {arguments.cpu})  # the servers inherit it
    ours = theirs = None
    with contextlib.ExitStack() as stack:
        if durable and arguments.only != "ours":
            folder = stack.enter_context(folder_that_flushes(folder))
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-server.", dir=folder))
        os.chmod(home, 0o755)
        try:
            if arguments.only != "ganesha":
                ours = Ours(arguments.bin, home, arguments.pool_size)
                ours.start_all()
                wait_until(lambda: ours.turns(), 30, "the console answers")
            if arguments.only != "ours":
                theirs = start_ganesha(home, durable)
            print(f"folder {folder}, {'servers on processor %d' % arguments.cpu if arguments.pin else 'not pinned'}", flush=True)
            return measure(arguments, passed, ours, theirs)
        finally:
            if theirs:
                theirs.close()
            if ours:
                ours.close()


if __name__ == "__main__":
    sys.exit(main())
