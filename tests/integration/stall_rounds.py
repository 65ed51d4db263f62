#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A daemon stands still again and again under a writer, by hand: stall_test.py with the real leases, and figures.

usage: stall_rounds.py BIN_DIRECTORY {mds,brick} [--seconds 5,35,100] [--rounds N] [--pool-directory FOLDER]

In each round the daemon is stopped (SIGSTOP) for so many seconds and goes on (SIGCONT). Health is asked every second.
One line a round: after how long the writer went on, and health was ok again; how many answers of health were untrue;
the records that were EIO. Untrue is "ok" of a server that had stood still for longer than it takes to notice
(HEALTH_NOTICES), "ok" when the writer needed longer than AIM from there, and "failed" when the writer had been at work
for HEALTH_NOTICES. At the end the file is compared with what was written.
Exit code 1: a record is lost, a writer went on later than after AIM, or health did not tell the truth.
"""
import argparse
import signal
import subprocess
import sys
import threading
import time

import record_writer
from cluster import Cluster

AIM = 5  # seconds from SIGCONT until the writer goes on
HEALTH_NOTICES = 5  # seconds: two of silence, the heartbeat before them, the question's own patience
PATIENCE = 120


class Health:
    """Asked every second by a thread of its own."""

    def __init__(self, cluster):
        self.command = [str(cluster.bin / "pnfsrdma"), "health", "--json", "--socket",
                        str(cluster.home / "console.sock")]
        self.answers = []  # (asked, answered, exit code)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.ask)
        self.thread.start()

    def ask(self):
        while not self.ended.wait(1):
            asked = time.monotonic()
            code = subprocess.run(self.command, capture_output=True, timeout=PATIENCE).returncode
            self.answers.append((asked, time.monotonic(), code))

    def end(self):
        self.ended.set()
        self.thread.join()


def wait_for(condition, seconds):
    """The seconds it took; None: it did not come."""
    begun = time.monotonic()
    while not condition():
        if time.monotonic() > begun + seconds:
            return None
        time.sleep(0.05)
    return time.monotonic() - begun


def stall(cluster, program, seconds, writer, health):
    """One round: (until the writer went on, until health was ok, lies)."""
    began = time.monotonic()
    cluster.signal(program, signal.SIGSTOP)
    time.sleep(seconds)
    before = writer.durable
    cluster.signal(program, signal.SIGCONT)
    resumed = time.monotonic()
    goes_on = wait_for(lambda: writer.durable >= before + 2, PATIENCE)
    well = wait_for(lambda: any(asked > resumed and code == 0 for asked, _, code in health.answers), PATIENCE)
    time.sleep(HEALTH_NOTICES + 2)
    lies = []
    works = resumed + (PATIENCE if goes_on is None else goes_on)
    for asked, answered, code in list(health.answers):
        # When it runs again "ok" is a promise: the writer goes on.
        borne = AIM if asked > resumed else 0
        if code == 0 and began + HEALTH_NOTICES < asked and answered < works - borne:
            lies.append(f"ok at {asked - began:.1f} s")
        if code != 0 and asked > works + HEALTH_NOTICES:
            lies.append(f"failed at {asked - began:.1f} s")
    return goes_on, None if well is None else time.monotonic() - resumed - HEALTH_NOTICES - 2, lies


def shown(seconds):
    return "never" if seconds is None else f"{seconds:.1f} s"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("program", choices=["mds", "brick"])
    parser.add_argument("--seconds", default="5,35,100")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--pool-directory")
    asked = parser.parse_args()
    bad = 0
    with Cluster(asked.bin, pool_size="256M", pool_directory=asked.pool_directory) as cluster:
        cluster.start_all()
        mount = cluster.mount()
        # Paced: twenty a second say as much as a thousand.
        writer, health = record_writer.Writer(mount / "records", 0.05), Health(cluster)
        try:
            time.sleep(3)
            for number in range(asked.rounds):
                for seconds in map(float, asked.seconds.split(",")):
                    lost, asked_before = writer.lost, len(health.answers)
                    goes_on, well, lies = stall(cluster, asked.program, seconds, writer, health)
                    late = goes_on is None or goes_on > AIM
                    bad += late or well is None or bool(lies)
                    print(f"{number + 1} {asked.program} {seconds:.0f} s: writer {shown(goes_on)}, health {shown(well)}, "
                          f"{len(lies)} of {len(health.answers) - asked_before} answers untrue{' (' + ', '.join(lies) + ')' if lies else ''}, "
                          f"EIO {writer.lost - lost}{', LATE' if late else ''}", flush=True)
        finally:
            cluster.signal(asked.program, signal.SIGCONT)
            health.end()
            ended = writer.end()
        other = cluster.mount(name="other")
        whole = (other / "records").read_bytes() == record_writer.expected(writer.durable)
        print(f"{writer.durable} records, {'all there' if whole else 'NOT ALL THERE'}; writer's exit code {ended}")
        other.unmount()
        mount.unmount()
    return 1 if bad or not whole or ended else 0


if __name__ == "__main__":
    sys.exit(main())
