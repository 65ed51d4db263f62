#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library's examples of a log and of a key-value cache under SIGKILL of the program, the brick and the MDS, and with
--mount, which they then go through, of the mount: what they acknowledged is there.

usage: library_crash_test.py BIN_DIRECTORY [--example log|cache] [--mount] [--rounds N] [--seed N]
"""
import argparse
import pathlib
import random
import subprocess
import sys
import threading
import time

import cluster


class Log:
    """One writer, that says the number of each record when it is durable."""

    def __init__(self, program, daemons):
        self.program, self.daemons = program / "append_log", daemons
        self.said = daemons.home / "said"
        self.acknowledged = 0
        self.writer = None

    def last_said(self):
        lines = self.said.read_text().split("\n")[:-1]  # what is behind the last newline was not said whole
        return int(lines[-1]) if lines else 0

    def begin(self, source):
        with open(self.said, "w") as out, open(self.daemons.home / "program.log", "a") as log:
            self.writer = subprocess.Popen([self.program, source, "log", "write", "100000000"], stdout=out, stderr=log)
        cluster.wait_until(lambda: self.writer.poll() is not None or self.last_said() > self.acknowledged, 60, "the program writes")

    def goes_on(self):
        before = self.last_said()
        cluster.wait_until(lambda: self.writer.poll() is not None or self.last_said() > before, 60, "the program goes on")
        if self.writer.poll() is not None:
            raise SystemExit(f"the program ended with {self.writer.returncode}:\n{self.daemons.log('program')[-2000:]}")

    def end(self):
        self.writer.kill()
        self.writer.wait()
        self.acknowledged = max(self.acknowledged, self.last_said())

    def check(self, source):
        checked = subprocess.run([self.program, source, "log", "check"], capture_output=True, text=True, timeout=120, check=False)
        if checked.returncode != 0:
            raise SystemExit(checked.stderr)
        found = int(checked.stdout)
        if found < self.acknowledged:
            raise SystemExit(f"{self.acknowledged} was acknowledged, the log ends with {found}")
        told, self.acknowledged = f"{self.acknowledged} acknowledged, {found} found", found
        return told


class Cache:
    """Two who set the same keys, a number higher than all before each time; who ends with success has acknowledged it."""
    KEYS = ("some", "other", "third", "fourth")

    def __init__(self, program, daemons):
        self.program, self.daemons = program / "cache", daemons
        self.begun = dict.fromkeys(self.KEYS, 0)
        self.acknowledged = dict.fromkeys(self.KEYS, 0)
        self.counted = 0
        self.lock = threading.Lock()  # the numbers, and who runs
        self.running, self.threads, self.stop = set(), [], False

    def set_without_end(self, source, keys):
        rng = random.Random(keys[0])
        while not self.stop:
            key = rng.choice(keys)
            with self.lock:
                if self.stop:
                    return
                self.begun[key] = number = self.begun[key] + 1
                with open(self.daemons.home / "program.log", "a") as log:
                    process = subprocess.Popen([self.program, source, "cache", "set", key, f"{number} {'x' * (number % 150)}"], stderr=log)
                self.running.add(process)
            done = process.wait()
            with self.lock:
                self.running.discard(process)
                if done == 0:
                    self.acknowledged[key] = number
                    self.counted += 1
            if done != 0:
                time.sleep(0.05)

    def begin(self, source):
        self.stop = False
        # A key is one writer's: which of two came last nobody could tell.
        self.threads = [threading.Thread(target=self.set_without_end, args=(source, keys)) for keys in (self.KEYS[:2], self.KEYS[2:])]
        for thread in self.threads:
            thread.start()
        self.goes_on()

    def goes_on(self):
        before = self.counted
        cluster.wait_until(lambda: self.counted >= before + 2, 120, "somebody sets")

    def end(self):
        with self.lock:
            self.stop = True
            for process in self.running:
                process.kill()
        for thread in self.threads:
            thread.join()

    def check(self, source):
        told = []
        for key in self.KEYS:
            got = subprocess.run([self.program, source, "cache", "get", key], capture_output=True, text=True, timeout=120, check=False)
            if got.returncode != 0 and self.acknowledged[key] == 0 and got.stderr == "":
                continue  # nobody has set it
            if got.returncode != 0:
                raise SystemExit(f"{key}: {self.acknowledged[key]} was acknowledged, and there is nothing: {got.stderr}")
            number, _, filling = got.stdout.rstrip("\n").partition(" ")
            number = int(number)
            if filling != "x" * (number % 150) or not self.acknowledged[key] <= number <= self.begun[key]:
                raise SystemExit(f"{key}: {self.acknowledged[key]} was acknowledged, {self.begun[key]} begun, and there is {got.stdout}")
            told.append(f"{key} {self.acknowledged[key]} {number}")
            self.acknowledged[key] = number  # it has been seen
        return f"{self.counted} sets acknowledged; acknowledged and found: {', '.join(told)}"


def one_round(example, daemons, mount, victim, rng):
    """The mount that is there then."""
    source = str(mount.path) if mount else f"127.0.0.1:{daemons.nfs_port}:/"
    example.begin(source)
    try:
        time.sleep(rng.random() * 0.5)
        if victim == "mount":
            mount.kill()
            example.end()
            mount = daemons.mount("actimeo=0", name=mount.name)
        elif victim != "program":
            daemons.kill(victim)
            time.sleep(rng.random() * 0.2)
            daemons.start_mds() if victim == "mds" else daemons.start_brick()
            example.goes_on()
    finally:
        example.end()
    return mount, example.check(source)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin")
    parser.add_argument("--example", choices=("log", "cache"), default="log")
    parser.add_argument("--mount", action="store_true")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    print(f"{arguments.rounds} rounds, --seed {arguments.seed}")
    rng = random.Random(arguments.seed)
    with cluster.Cluster(arguments.bin, pool_size="512M", lease_seconds=5).start_all() as daemons:
        example = {"log": Log, "cache": Cache}[arguments.example](pathlib.Path(arguments.bin).parent / "examples", daemons)
        mount = daemons.mount("actimeo=0") if arguments.mount else None
        victims = ("program", "brick", "mds", *(("mount",) if mount else ()))
        for turn in range(arguments.rounds):
            victim = victims[turn] if turn < len(victims) else rng.choice(victims)
            try:
                mount, told = one_round(example, daemons, mount, victim, rng)
            except SystemExit as wrong:
                raise SystemExit(f"round {turn} ({victim}): {wrong}") from None
            print(f"round {turn}: {victim} killed, {told}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
