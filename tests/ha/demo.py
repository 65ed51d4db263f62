#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two metadata servers: one thing after the other goes wrong under a writer of files and a database, and what had to wait.

usage: [CHECK=1] demo.py BIN_DIRECTORY
  CHECK=1: cleans up, exits 0 only if every check passed. Otherwise all is left running to look at; stop.py ends it.
"""
import os
import sys
import time

from faults import FAULTS, play
from installation import BRICKS, MEMBERS, SERVERS
from network import SWITCH
from stop import HOME, PREFIX
from trial import trial
from work import Work

CHECK = os.environ.get("CHECK") == "1"


def title(text):
    print(f"\n\033[1m{text}\033[0m", flush=True)


def say(text):
    print(f"    {text}", flush=True)


def ok(text):
    say(f"\033[32mok\033[0m  {text}")


def check(work, everything=False):
    files, transactions = work.check(everything)
    ok(f"all {files} files are there, and {'all bytes' if everything else 'what is in the new ones'}; integrity_check says ok, "
       f"all {transactions} transactions are there")


def show(system):
    title("1. Eight hosts: a network namespace each, joined by a bridge")
    for hosts in ((*MEMBERS, *SERVERS), (*BRICKS, *system.clients)):
        say(", ".join(f"{host} {system.network.address(host)}" for host in hosts))
    system.start()
    say(f"{system.serving().host} serves, {system.standing_by().host} follows it: what they share is a log in etcd.")
    title("2. Work on a mount of both MDSs: files that are made, synced and renamed; SQLite's transactions")
    work = Work(system)
    say(f"$ {' '.join(work.mount.daemon.command[2:])}")
    time.sleep(2)
    check(work)
    for number, fault in enumerate(FAULTS, 3):
        title(f"{number}. {fault.title}")
        gap = play(fault, system, work)
        serving, following = system.serving().host, system.standing_by().host
        say(f"The longest that a file waited: {gap.files:.1f} s; that a transaction did: {gap.database:.1f} s ({fault.counted}).")
        say(f"{serving} {f'served after {gap.served:.1f} s' if gap.served else 'serves as before'}; {following} follows it.")
        check(work)
    title(f"{len(FAULTS) + 3}. All of it once more")
    work.end()
    check(work, everything=True)


def hint(system):
    serving, namespace = system.serving().host, system.network.namespace
    print(f"""
Everything is still running. Look around:
    ls {system.home}/mount-client-1
    tail {system.home}/logs/mds-?.log
    {system.bin}/pnfsrdma --socket {system.home}/{serving}.sock health
    ip netns exec {namespace(MEMBERS[0])} curl http://{system.network.address(MEMBERS[0])}:2379/health
    bridge -netns {namespace(SWITCH)} link set dev {serving} state 0     # cuts {serving} off: it ends, and the other one serves
Stop it:
    make demo-ha-stop""")


def main():
    begun = time.monotonic()
    with trial(sys.argv[1], home=None if CHECK else HOME, prefix=None if CHECK else PREFIX, stays=not CHECK) as system:
        show(system)
        if CHECK:
            assert not (found := system.check_media()), "\n".join(found)
            ok("--check of both MDSs and both bricks finds nothing wrong")
    print(f"\nEvery check passed, in {time.monotonic() - begun:.0f} s.")
    if not CHECK:
        hint(system)


if __name__ == "__main__":
    main()
