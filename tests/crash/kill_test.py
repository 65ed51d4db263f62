#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of brick, MDS, client or both daemons at random moments of a write workload; then everything acknowledged
must be there.

After each round: every synced grain is as acknowledged, no byte of another file, another place or an older life of the
file is readable, the brick's table is sound, and its blocks and the MDS's extents agree (`--check` of both). A mount
must go on by itself when the daemon is back, within RECOVERY_SECONDS; umount must end, with the daemons dead too.
"""
import argparse
import json
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from cluster import Cluster, wait_until  # noqa: E402
import workload  # noqa: E402

WORKERS = 3
LEASE_SECONDS = 3
RECOVERY_SECONDS = 30  # far above what is usual, so that a busy machine is no failure; the slowest is printed
VICTIMS = ["brick", "mds", "client", "both", "one after the other"]


class Failure(Exception):
    pass


class Workers:
    """The workload's processes on one mount."""
    started = []

    def __init__(self, cluster, mount, seed, numbers=range(WORKERS)):
        script = pathlib.Path(__file__).with_name("workload.py")
        self.journals = [journal(cluster, w) for w in numbers]
        self.logs = [cluster.home / f"worker{w}.log" for w in numbers]
        self.processes = []
        for w, path, log_path in zip(numbers, self.journals, self.logs):
            with open(log_path, "a") as log:
                self.processes.append(subprocess.Popen(
                    [sys.executable, str(script), str(mount.path), str(path), str(w), str(seed)], stderr=log))
        Workers.started += self.processes

    def progress(self):
        return [path.read_text().count('"end_write"') if path.exists() else 0 for path in self.journals]

    def wait_for_progress(self, since):
        """All of them have synced something after `since`."""
        start = time.monotonic()
        try:
            wait_until(lambda: all(now > before for now, before in zip(self.progress(), since)), RECOVERY_SECONDS,
                       "every worker goes on")
        except TimeoutError as e:
            raise Failure(f"the mount does not recover: {since} and then {self.progress()} synced writes") from e
        return time.monotonic() - start

    def stop(self):
        ended = [p.poll() for p in self.processes]
        for p in self.processes:
            p.kill()
        for p in self.processes:
            try:
                p.wait(timeout=RECOVERY_SECONDS)
            except subprocess.TimeoutExpired as e:
                raise Failure("a worker hangs in a system call on the mount") from e
        for w, code in enumerate(ended):
            if code not in (None, 0, -signal.SIGKILL):
                raise Failure(f"worker {w} ended with {code}: {self.logs[w].read_text()[-1500:]}")


def journal(cluster, worker):
    return cluster.home / f"journal{worker}"


def check_offline(cluster):
    """Both daemons' own checks, with the brick up for the comparison of blocks and extents."""
    problems = []
    cluster.stop("mds")
    result = cluster.run("mdsd", "--config", str(cluster.home / "mds.json"), "--check", check=False)
    if result.returncode != 0:
        problems.append(f"mdsd --check: {result.stdout}{result.stderr}")
    cluster.stop("brick")
    result = cluster.run("brickd", "--config", str(cluster.home / "brick.json"), "--check", check=False)
    if result.returncode != 0:
        problems.append(f"brickd --check: {result.stdout}{result.stderr}")
    return problems


def start_again(cluster, names):
    starts = {"brick": cluster.start_brick, "mds": cluster.start_mds}
    for name in names:
        starts[name]()


def kill_daemons(cluster, victim, chance):
    """Kills and restarts; what is dead stays dead for a moment."""
    if victim == "one after the other":  # the second dies while everybody recovers from the first
        for name in chance.sample(["brick", "mds"], 2):
            cluster.kill(name)
            time.sleep(chance.uniform(0, 0.3))
            start_again(cluster, [name])
            time.sleep(chance.uniform(0, 0.2))
        return
    names = ["mds", "brick"] if victim == "both" else [victim]
    for name in names:
        cluster.kill(name)
    time.sleep(chance.uniform(0, 0.3))
    start_again(cluster, sorted(names))


def end_of_mount(mount, chance):
    """What the kernel has cached must not help the check: the mount goes, killed or in good order."""
    if chance.random() < 0.5:
        mount.kill()
    else:
        mount.unmount()


def unmount_without_servers(cluster, mount, workers):
    for name in ("mds", "brick"):
        cluster.kill(name)
    workers.stop()
    start = time.monotonic()
    subprocess.run(["umount", str(mount.path)], check=True, timeout=RECOVERY_SECONDS)
    mount.process.wait(timeout=2 * RECOVERY_SECONDS)
    seconds = time.monotonic() - start
    start_again(cluster, ["brick", "mds"])
    return seconds


def freeze_client(cluster, mount, workers, number, seed):
    """A client stands still for longer than its lease, in the midst of its writes. What it holds is revoked, its files
    are removed, others get their blocks; then it goes on. Not a byte of it may get there."""
    mount.process.send_signal(signal.SIGSTOP)
    for process in workers.processes:
        process.kill()  # they end when the client goes on
    other = cluster.mount(name=f"other{number}")
    start = time.monotonic()
    for w in range(WORKERS):
        with open(journal(cluster, w), "a") as notes:
            for file in range(workload.FILES):
                # Begun and never ended: what the client does when it goes on comes behind it.
                notes.write(json.dumps({"file": file, "what": "begin_remove", "values": []}) + "\n")
        for path in other.path.glob(f"w{w}.f*"):
            path.unlink()
    seconds = time.monotonic() - start
    time.sleep(LEASE_SECONDS + 1)  # its open files live as long as its lease
    others = Workers(cluster, other, seed, range(WORKERS, 2 * WORKERS))
    others.wait_for_progress(others.progress())
    time.sleep(1)
    mount.process.send_signal(signal.SIGCONT)
    time.sleep(1)
    workers.stop()
    others.stop()
    other.kill()
    mount.kill()
    return seconds


def one_round(cluster, mount, number, seed):
    chance = random.Random(seed * 1000 + number)
    victim = chance.choice(VICTIMS)
    workers = Workers(cluster, mount, seed * 1000 + number + 1)
    time.sleep(chance.uniform(0.2, 1.5))
    seconds = 0.0
    # Each kind is in ten rounds: `ctest` has fifteen.
    if number % 10 == 3:
        victim = "all"
        seconds = unmount_without_servers(cluster, mount, workers)
    elif number % 10 == 7:
        victim = "nobody, client frozen"
        seconds = freeze_client(cluster, mount, workers, number, seed * 1000 + number + 1)
    elif victim == "client":
        mount.process.kill()
        workers.stop()  # before the dead mount is taken away: behind it is an empty directory, where nothing is found
        mount.kill()
    else:
        before = workers.progress()
        kill_daemons(cluster, victim, chance)
        if chance.random() < 0.5:
            seconds = workers.wait_for_progress(before)
        else:
            time.sleep(chance.uniform(0, 0.5))
        workers.stop()
        end_of_mount(mount, chance)
    fresh = cluster.mount(name=f"check{number}")
    problems = [p for w in range(2 * WORKERS) for p in workload.verify(fresh.path, journal(cluster, w), w)]
    if number % 10 == 9:
        fresh.unmount()
        problems += check_offline(cluster)
        start_again(cluster, ["brick", "mds"])
        fresh = cluster.mount(name=f"again{number}")
    print(f"round {number + 1}: killed {victim:<21}  {sum(workers.progress())} synced writes so far, "
          f"{seconds:.1f} s to recover, {len(problems)} problems", flush=True)
    if problems:
        raise Failure("\n".join(problems[:20]) + f"\n{len(problems)} problems")
    return fresh


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int(time.time()) & 0xFFFF)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    with Cluster(arguments.bin, pool_size="512M", lease_seconds=LEASE_SECONDS) as cluster:
        cluster.start_all()
        mount = cluster.mount()
        for number in range(arguments.rounds):
            try:
                mount = one_round(cluster, mount, number, arguments.seed)
            except Failure as e:
                # Else they go on in the directory below, once the mount is away.
                for process in Workers.started:
                    process.kill()
                raise SystemExit(f"{e}\nround {number + 1}, seed {arguments.seed}") from e
        mount.unmount()
        if problems := check_offline(cluster):
            raise SystemExit("\n".join(problems))
        refusals = [line for w in range(WORKERS)
                    for line in (cluster.home / f"worker{w}.log").read_text().splitlines() if "EIO" in line]
        refused = len(refusals)
        if refusals:
            causes = [line for path in cluster.home.glob("*.log") for line in path.read_text(errors="replace").splitlines()
                      if "sync-failed" in line or "write-lost" in line]
            print("\n".join(refusals + causes))
    print(f"{arguments.rounds} rounds: nothing acknowledged was lost; {refused} writes were refused with EIO")


if __name__ == "__main__":
    main()
