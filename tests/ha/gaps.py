#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long work waits when something is lost: each fault again and again, as a table in Markdown.

usage: gaps.py BIN_DIRECTORY [--rounds N] [--only FAULT,...]

A gap is the longest that one operation waited, of a writer of files and a database (faults.py says from when on); beside it, when
another MDS served. Behind each round all that was acknowledged has to be there.
"""
import argparse
import math
import os
import random
import sys
import time

from faults import FAULTS, play
from trial import trial
from work import Work

MEASURED = ["mds-killed", "mds-cut-off", "mds-paused", "etcd-leader", "etcd-member", "quorum"]


def percentile(values, share):
    """The least of them that is not below so many of them."""
    return sorted(values)[max(0, math.ceil(len(values) * share) - 1)]


def columns(values):
    return [f"{value:.1f} s" for value in (percentile(values, 0.5), percentile(values, 0.99), max(values))] if values else ["", "", ""]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default=",".join(MEASURED), help=", ".join(fault.name for fault in FAULTS))
    asked = parser.parse_args()
    known = {fault.name: fault for fault in FAULTS}
    if unknown := set(asked.only.split(",")) - set(known):
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    faults = [known[name] for name in asked.only.split(",")]
    gaps, served, loads = {fault.name: [] for fault in faults}, {fault.name: [] for fault in faults}, []
    with trial(asked.bin) as system:
        work = Work(system.start())
        for number in range(asked.rounds):
            for fault in faults:
                time.sleep(random.uniform(0.5, 2))  # at any moment between two renewals of the lead
                gap = play(fault, system, work)
                work.check()
                gaps[fault.name].append(max(gap.files, gap.database))
                if gap.served:
                    served[fault.name].append(gap.served)
                loads.append(os.getloadavg()[0])
                print(f"{number + 1} {fault.name}: {gap}, load {loads[-1]:.1f}", file=sys.stderr, flush=True)
        print(f"\n{asked.rounds} rounds, {os.cpu_count()} processors, load average {min(loads):.1f} to {max(loads):.1f}:\n")
        print("| what is lost | the gap counts | gap: p50 | p99 | longest | an MDS served: p50 | p99 | longest |\n|---|---|---|---|---|---|---|---|")
        for fault in faults:
            print("| " + " | ".join([fault.title, fault.counted, *columns(gaps[fault.name]), *columns(served[fault.name])]) + " |")
        work.end()
        work.check(everything=True)


if __name__ == "__main__":
    main()
