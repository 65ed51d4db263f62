#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of another version on one host after the other, as the guide says, under work: the witness, the standby, the one that serves.

usage: upgrade.py OLD_BIN_DIRECTORY NEW_BIN_DIRECTORY [--without-tls]
  --without-tls: of the control of bricks, for old programs that do not know it

The mount, and the bricks, go on with the programs that they have. Only between two hosts, when `pnfsrdma cluster status` finds nothing
wrong, the next one follows.
"""
import json
import pathlib
import subprocess
import sys
import time

from installation import BRICKS, MEMBERS, SECONDS, SERVERS, wait_until
from trial import trial
from work import Work


def all_well(system, programs):
    """Until `pnfsrdma cluster status` finds nothing wrong on the host that serves."""
    said = []

    def well():
        if not (serving := system.serving()):
            return False
        asked = subprocess.run([str(programs / "pnfsrdma"), "--socket", str(system.home / f"{serving.host}.sock"), "cluster", "status"],
                               capture_output=True, text=True, check=False, timeout=SECONDS)
        said[:] = [asked.stdout + asked.stderr]
        return asked.returncode == 0
    try:
        wait_until(well, SECONDS, "pnfsrdma cluster status finds nothing wrong")
    except TimeoutError as error:
        raise AssertionError(f"{error}:\n{''.join(said)}") from None


def take_tls_away(system):
    for host in (*BRICKS, *SERVERS):
        path = system.home / f"{host}.json"
        settings = json.loads(path.read_text())
        settings.pop("brick_tls", None)
        settings.get("control", {}).pop("tls", None)
        path.write_text(json.dumps(settings))


def version_of(server):
    return next(word for word in server.said().split() if word.startswith("version="))


def main():
    old, new = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    with trial(str(old)) as system:
        if "--without-tls" in sys.argv:
            take_tls_away(system)
        work = Work(system.start())
        all_well(system, old)

        def step(what, since, programs):
            work.goes_on(time.monotonic())
            system.wait_until_settled()
            all_well(system, programs)
            work.check()
            print(f"ok  {what}: a file waited {max(work.gaps(since)):.1f} s at most", flush=True)

        def replace(server):
            server.stop()
            server.command = [str(new / "pnfsrdma-mdsd") if word == str(old / "pnfsrdma-mdsd") else word for word in server.command]
            server.start()

        since = time.monotonic()
        witness = system.etcd.members[MEMBERS[2]]
        stopping = witness.not_wanted()
        stopping.terminate()
        stopping.wait(timeout=SECONDS)  # etcd ends by that signal
        witness.start()
        step("the witness is restarted", since, old)
        since, first = time.monotonic(), system.serving()
        replace(system.standing_by())
        step("the standby has the new version", since, old)
        since = time.monotonic()
        replace(first)
        step(f"the one that served follows the new one, {version_of(system.serving())}", since, new)
        if system.serving() is first:
            raise AssertionError(f"{first.host} should follow")
        since = time.monotonic()
        other = system.serving()
        other.stop()
        other.start()
        step("and back", since, new)
        work.end()
        work.check(everything=True)
        if found := system.check_media():
            raise AssertionError("\n".join(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
