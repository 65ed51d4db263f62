#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library's example of a log under SIGKILL of the program, the brick and the MDS, and with --mount, which it then goes
through, of the mount: what it acknowledged is there.

usage: library_crash_test.py BIN_DIRECTORY [--mount] [--rounds N] [--seed N]
"""
import argparse
import pathlib
import random
import subprocess
import sys
import time

import cluster


def last_line(path):
    lines = path.read_text().split("\n")[:-1]  # what is behind the last newline was not said whole
    return int(lines[-1]) if lines else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin")
    parser.add_argument("--mount", action="store_true")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    program = pathlib.Path(arguments.bin).parent / "examples" / "append_log"
    print(f"{arguments.rounds} rounds, --seed {arguments.seed}")
    rng = random.Random(arguments.seed)
    with cluster.Cluster(arguments.bin, pool_size="512M", lease_seconds=5).start_all() as daemons:
        mount = daemons.mount("actimeo=0") if arguments.mount else None
        source = str(mount.path) if mount else f"127.0.0.1:{daemons.nfs_port}:/"
        victims = ("program", "brick", "mds", "mount") if mount else ("program", "brick", "mds")
        said = daemons.home / "said"
        acknowledged = 0
        for turn in range(arguments.rounds):
            victim = rng.choice(victims)
            with open(said, "w") as out, open(daemons.home / "program.log", "a") as log:
                writer = subprocess.Popen([program, source, "log", "write", "100000000"], stdout=out, stderr=log)
            cluster.wait_until(lambda: writer.poll() is not None or last_line(said) > acknowledged, 60, "the program writes")
            time.sleep(rng.random() * 0.5)
            if victim == "mount":
                mount.kill()
                writer.wait(60)
                mount = daemons.mount("actimeo=0", name=mount.name)
            elif victim != "program":
                daemons.kill(victim)
                time.sleep(rng.random() * 0.2)
                daemons.start_mds() if victim == "mds" else daemons.start_brick()
                before = last_line(said)
                cluster.wait_until(lambda: writer.poll() is not None or last_line(said) > before, 60, "the program goes on")
            if writer.poll() is not None and victim != "mount":
                raise SystemExit(f"round {turn} ({victim}): the program ended with {writer.returncode}:\n{daemons.log('program')[-2000:]}")
            writer.kill()
            writer.wait()
            acknowledged = max(acknowledged, last_line(said))
            checked = subprocess.run([program, source, "log", "check"], capture_output=True, text=True, timeout=120, check=False)
            if checked.returncode != 0:
                raise SystemExit(f"round {turn} ({victim}): {checked.stderr}")
            found = int(checked.stdout)
            print(f"round {turn}: {victim} killed, {acknowledged} acknowledged, {found} found", flush=True)
            if found < acknowledged:
                raise SystemExit(f"round {turn} ({victim}): {acknowledged} was acknowledged, the log ends with {found}")
            acknowledged = found


if __name__ == "__main__":
    sys.exit(main())
