#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library's example of a ring between two hosts: the sender goes to the server, the receiver through a mount, and
each line arrives once and in order, whoever is killed on the way.

usage: library_ring_test.py BIN_DIRECTORY [--rounds N] [--seed N]
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import time

import cluster

LINES_A_ROUND = 50000  # nearly fifty times around
BATCH = 64
USER = {"user": os.geteuid(), "group": os.getegid()}


class Ring:
    def __init__(self, program, source, mounted, home):
        self.program, self.source, self.mounted, self.home = program, source, mounted, home
        self.output = home / "received"
        self.output.touch()
        self.processes = []

    def start(self, source, *arguments, **streams):
        self.processes.append(subprocess.Popen([self.program, source, "ring", *map(str, arguments)], text=True, **streams, **USER))
        return self.processes[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()

    def run(self, *arguments):
        process = self.start(self.source, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, error = process.communicate(timeout=120)
        return process.returncode, out, error

    def status(self):
        """Sent, received, sender."""
        code, out, error = self.run("status")
        if code != 0:
            raise SystemExit(f"status: {error}")
        words = out.replace(",", "").split()
        return int(words[1]), int(words[3]), int(words[5])

    def sender(self, verb, first, last):
        lines = self.home / "lines"
        lines.write_text("".join(f"line {number} {'x' * (number % 200)}\n" for number in range(first, last)))
        with open(lines) as given, open(self.home / "program.log", "a") as log:
            return self.start(self.source, verb, stdin=given, stderr=log)

    def receiver(self, count):
        with open(self.output, "a") as out, open(self.home / "program.log", "a") as log:
            return self.start(str(self.mounted), "receive", count, stdout=out, stderr=log)

    def check(self, restarts):
        """Every number in order; it goes back only where a receiver began anew, by no more than it reads at once."""
        expected, backwards = 0, 0
        for line in self.output.read_text().splitlines():
            word, number, filling = (line + " ").split(" ")[:3]
            number = int(number)
            if word != "line" or len(filling) != number % 200:
                raise SystemExit(f"not what was sent: {line}")
            if number != expected:
                if not expected - BATCH <= number < expected:
                    raise SystemExit(f"line {number} came where {expected} was to come")
                backwards += 1
            expected = number + 1
        if backwards > restarts:
            raise SystemExit(f"lines came twice {backwards} times, receivers began anew {restarts} times")
        return expected


def settled(ring):
    """What a killed process had under way has come to pass; the next sender must begin behind that."""
    now, before = ring.status(), None
    while now != before:
        time.sleep(0.3)
        now, before = ring.status(), now
    return now


def kill(process, what):
    """Not on a busy machine, where it may have done all before we look."""
    if process.poll() is not None:
        print(f"the {what} ended with {process.returncode} before it was killed")
        return False
    process.kill()
    process.wait()
    return True


def one_round(ring, daemons, rng, goal, victim):
    """Sends what is missing to `goal`; the victim is killed somewhere on the way. How often a receiver began anew, and
    whether something was killed."""
    sent, received, owner = ring.status()
    sender = ring.sender("take-over" if owner else "send", sent, goal)
    receiver = ring.receiver(goal - received)
    some_way = sent + rng.randrange(1, LINES_A_ROUND // 5)
    cluster.wait_until(lambda: ring.status()[0] >= some_way, 60, "the sender is some way")
    killed = victim != "nobody"
    if victim == "brick":
        daemons.kill("brick")
        daemons.start_brick()
    elif killed:
        killed = kill(sender if victim == "sender" else receiver, victim)
    restarts = 0
    deadline = time.monotonic() + 120
    # What has ended, by the kill or since the brick did not say what became of a word, goes on where it was.
    while ring.status()[:2] != (goal, goal) or sender.poll() is None or receiver.poll() is None:
        if time.monotonic() > deadline:
            raise SystemExit(f"{victim} killed: {ring.status()} instead of {goal}:\n{daemons.log('program')[-2000:]}")
        if sender.poll() is not None and ring.status()[0] < goal:
            sent, _, owner = settled(ring)
            if sent < goal:
                sender = ring.sender("take-over" if owner else "send", sent, goal)
        if receiver.poll() is not None:
            received = ring.status()[1]
            if received < goal:
                restarts += 1
                receiver = ring.receiver(goal - settled(ring)[1])
        time.sleep(0.1)
    return restarts, killed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    program = pathlib.Path(arguments.bin).parent / "examples" / "ring"
    print(f"{arguments.rounds} rounds, --seed {arguments.seed}")
    rng = random.Random(arguments.seed)
    with cluster.Cluster(arguments.bin, pool_size="256M", lease_seconds=5).start_all() as daemons:
        mount = daemons.mount("actimeo=0")
        with Ring(program, f"127.0.0.1:{daemons.nfs_port}:/", mount.path, daemons.home) as ring:
            run_rounds(ring, daemons, rng, arguments.rounds)
            check_refusals(ring)
        mount.unmount()


def run_rounds(ring, daemons, rng, rounds):
    restarts = 0
    victims = set()
    for turn in range(rounds):
        victim = ("nobody", "sender", "receiver", "brick")[turn % 4]
        began = time.monotonic()
        began_anew, killed = one_round(ring, daemons, rng, (turn + 1) * LINES_A_ROUND, victim)
        restarts += began_anew
        victims |= {victim} if killed else set()
        found = ring.check(restarts)
        print(f"round {turn}: {victim} killed, {found} lines, {time.monotonic() - began:.1f} s", flush=True)
        if found != (turn + 1) * LINES_A_ROUND:
            raise SystemExit("lines are missing at the end")
    if rounds >= 10 and len(victims) < 3:
        raise SystemExit(f"killed were only {victims}")


def check_refusals(ring):
    holder = ring.start(ring.source, "send", stdin=subprocess.PIPE)
    cluster.wait_until(lambda: ring.status()[2] == holder.pid, 30, "the sender has the ring")
    code, _, error = ring.run("send")
    if code != 1 or f"process {holder.pid} sends" not in error:
        raise SystemExit(f"a second sender: {code} {error}")
    holder.communicate("y" * 300 + "\n", timeout=60)
    if holder.returncode != 1:
        raise SystemExit("a line that fits no slot was taken")
    if ring.run("give")[0] != 2:
        raise SystemExit("usage")


if __name__ == "__main__":
    sys.exit(main())
