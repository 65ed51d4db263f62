#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One address, which keepalived moves to the host that serves: with the configuration that the guide has for it.

usage: floating_address.py BIN_DIRECTORY

A mount knows that address alone, as the kernel's NFS client would. MDSs are killed, cut off, stopped and restarted under work.
"""
import json
import pathlib
import re
import shutil
import sys

from faults import FAULTS, play
from installation import SERVERS, Daemon, wait_until
from network import SUBNET, run
from trial import SKIPPED, trial
from work import Work

GUIDE = pathlib.Path(__file__).parents[2] / "docs/administration.md"
FLOATING = f"{SUBNET}.9"
PLAYED = {"mds-killed", "mds-cut-off", "mds-paused", "mds-restarted"}
SECONDS = 60


def settings_of_guide(system, host):
    """The guide's block, for that host of the installation."""
    text = re.search(r"```conf\n(global_defs.*?)```", GUIDE.read_text(), re.S).group(1)
    for was, now in (("192.0.2.9", FLOATING), ("pnfsrdma health", f"{system.bin}/pnfsrdma --socket {system.home}/{host}.sock health")):
        if was not in text:
            raise AssertionError(f"the guide's block has no {was!r} any more")
        text = text.replace(was, now)
    return text


def keepalived(system, host):
    path = system.home / f"{host}.keepalived"
    path.write_text(settings_of_guide(system, host))
    path.chmod(0o600)
    files = [f"--{kind}={system.home}/{host}.{kind}" for kind in ("pid", "vrrp_pid", "checkers_pid")]
    return Daemon(system.network, host, system.home / "logs" / f"{host}-keepalived.log",
                  ["keepalived", "-n", "-l", "-P", "-f", str(path), *files])


def holders(system):
    return [host for host in SERVERS if f" {FLOATING}/" in run("ip", "-netns", system.network.namespace(host), "-o", "address")]


def wait_until_moved(system):
    wait_until(lambda: system.serving() and holders(system) == [system.serving().host], SECONDS,
               f"{FLOATING} is where an MDS serves, and nowhere else")


def main():
    if shutil.which("keepalived") is None:
        print("skipped: keepalived is not installed (packaging/dependencies.sh ha)")
        return SKIPPED
    with trial(sys.argv[1]) as system:
        for host in SERVERS:
            path = system.home / f"{host}.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"listen": ["[::]:2049"]}))
        system.start()
        for host in SERVERS:
            keepalived(system, host).start()
        wait_until_moved(system)
        work = Work(system, servers=[FLOATING])
        print(f"a mount of {FLOATING}, which {holders(system)[0]} has", flush=True)
        for fault in FAULTS:
            if fault.name not in PLAYED:
                continue
            gap = play(fault, system, work)
            wait_until_moved(system)
            work.check()
            print(f"ok  {fault.title}: a file waited {gap.files:.1f} s, a transaction {gap.database:.1f} s; {holders(system)[0]} has the address",
                  flush=True)
        work.end()
        work.check(everything=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
