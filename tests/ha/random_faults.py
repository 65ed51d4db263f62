#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills, pauses and partitions at random, also at the same time, under work of two client hosts.

usage: random_faults.py BIN_DIRECTORY [--rounds N] [--seed N] [--first ROUND]

Behind each round all goes on, and it is checked that nothing acknowledged is lost, no lock was held twice, no answer is older than
what was acknowledged before its question, no two MDSs had the lead at once, no brick did anything for one that was not the last to
claim it, and no program ended that should not have.
A failure prints seed and round, which --seed and --first repeat (the same faults, at the same moments), and where the logs are.
"""
import argparse
import bisect
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Callable

import history
import journal
from installation import BRICKS, FENCED, MEMBERS, SERVERS
from trial import trial
from work import Work, Worker

CLIENTS = ["client-1", "client-2"]
CLIENT_SECONDS = 8  # below a lease: behind one, another client may have the lock of one that is cut off
LONGEST_SECONDS = 12
FAULTS_MAX = 4
ORDERLY_SECONDS = 20
DISK_LOST = "killed, with its disk"
PIPE_SECONDS = 1  # until what a worker has said has been read


@dataclass
class Injury:
    what: str
    host: str
    begins: float  # seconds from the begin of the round
    ends: float
    harm: Callable
    heal: Callable
    others: tuple = ()  # hosts that are cut off from that one only; none: all are

    def __str__(self):
        return f"{self.host} {self.what} {self.begins:.1f}-{self.ends:.1f}"


class Injuries:
    """What may happen in a round. One at a time to the program of a host, and one to its network."""

    def __init__(self, system):
        self.system = system

    def end_in_order(self, daemon):
        daemon.not_wanted().terminate()

    def start_again(self, daemon):
        process = daemon.not_wanted()
        try:
            process.wait(timeout=ORDERLY_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        daemon.start()

    def of_program(self, host):
        daemon = self.system.daemons[host]
        kinds = [("killed", daemon.kill, daemon.start, ()), ("paused", daemon.pause, daemon.go_on, ())]
        if host in SERVERS:
            kinds += [("ends in order", lambda: self.end_in_order(daemon), lambda: self.start_again(daemon), ()),
                      (DISK_LOST, daemon.kill, lambda: self.replace(daemon), ())]
        return kinds

    def replace(self, daemon):
        self.system.lose_disk(daemon)
        daemon.start()

    def of_network(self, host):
        network = self.system.network
        kinds = [("cut off", lambda: network.cut(host), lambda: network.join(host), ())]
        if host in SERVERS:
            parts = (("etcd", MEMBERS), ("bricks", BRICKS), ("clients", CLIENTS), ("a member", MEMBERS[:1]))
            for name, others in parts:
                kinds.append((f"cut off from {name}", lambda others=others: network.cut_between(host, others),
                              lambda others=others: network.join_between(host, others), tuple(others)))
                # Half a cut: what the one sends is lost, what it is sent arrives.
                kinds.append((f"not heard by {name}", lambda others=others: network.silence(host, others),
                              lambda others=others: network.join_between(host, others), tuple(others)))
                kinds.append((f"deaf to {name}", lambda others=others: [network.silence(other, [host]) for other in others],
                              lambda others=others: network.join_between(host, others), tuple(others)))
        return kinds

    def choose(self, chance):
        injuries, taken = [], set()
        for _ in range(chance.randint(1, FAULTS_MAX)):
            host = chance.choice([*SERVERS * 4, *MEMBERS, *BRICKS, chance.choice(CLIENTS)])
            part = "network" if host in CLIENTS else chance.choice(["program", "network"])
            if (host, part) in taken:
                continue
            taken.add((host, part))
            what, harm, heal, others = chance.choice(self.of_network(host) if part == "network" else self.of_program(host))
            if what == DISK_LOST:
                if what in (injury.what for injury in injuries):
                    continue  # both are more than can be lost
            begins = chance.uniform(0, 6)
            lasts = chance.uniform(0.2, CLIENT_SECONDS if host in CLIENTS else LONGEST_SECONDS)
            injuries.append(Injury(what, host, begins, begins + lasts, harm, heal, others))
        return sorted(injuries, key=lambda injury: injury.begins)


class Watched:
    """The work, and who looks at it: writers and a lock on client-1, a lock and a mount of each MDS alone on client-2."""

    def __init__(self, system):
        self.system = system
        self.work = Work(system)
        folder = self.work.mount.path
        other = system.mount("client-2", "mount-client-2")
        self.sizes = self.worker("sizes", folder / "size", "sizes")
        self.sizes.goes_on(0)
        self.locks = {host: self.worker("lock", path / "lock", f"lock-{host}")
                      for host, path in zip(CLIENTS, (folder, other.path))}
        # A standby takes no mount: each gets its own when it serves.
        self.looks = {}
        for _ in SERVERS:
            name = system.serving().host
            mount = system.mount("client-2", f"only-{name}", [name], "noac")
            self.looks[name] = self.worker("looks", mount.path / "size", f"looks-{name}")
            self.looks[name].goes_on(0)
            system.servers[name].stop()
            system.servers[name].start()
            system.wait_until_settled()
        self.journals = {name: journal.Journal(name, brick.log_path) for name, brick in system.bricks.items()}
        self.writers = journal.Writers(self.start_of, self.held_up)
        self.injuries = []  # (moment of the round's begin, injury)

    def host_of(self, peer):
        return next(host for host in SERVERS if self.system.network.address(host) == peer.rpartition(":")[0])

    def start_of(self, peer, moment):
        host = self.host_of(peer)
        return f"{host}, start {bisect.bisect_right(self.system.servers[host].launches, moment)}"

    def held_up(self, peer, brick, came):
        """Whether what came to the brick then may have been sent by the MDS long before."""
        host = self.host_of(peer)
        return any(journal.may_have_held_up(begun + injury.begins, begun + injury.ends, came) for begun, injury in self.injuries
                   if (injury.host == brick or (injury.host == host and (not injury.others or brick in injury.others)))
                   and injury.what not in ("killed", DISK_LOST, "ends in order"))

    def worker(self, kind, path, log):
        worker = Worker(kind, path, self.system.home / "logs" / f"worker-{log}.log")
        self.system.closing.callback(worker.kill)
        return worker

    def goes_on(self, since):
        self.work.goes_on(since)
        for worker in (self.sizes, *self.locks.values(), self.looks[self.system.serving().host]):
            worker.goes_on(since)

    def check(self):
        ends = [f"{name} ended with {code}" for name, daemon in self.system.daemons.items() for _, code in daemon.ends
                if not (name in SERVERS and code == FENCED)]
        looks = {name: list(worker.operations) for name, worker in self.looks.items()}
        now = time.monotonic()
        time.sleep(PIPE_SECONDS)
        sizes = list(self.sizes.operations)
        wrong = ends + history.held_twice({host: [operation for operation in list(worker.operations) if operation.ended < now]
                                           for host, worker in self.locks.items()})
        for operations in looks.values():
            wrong += history.stale_looks(sizes, operations)
        wrong += history.leads_at_once({name: (self.system.servers[name].launches, looks[name]) for name in SERVERS})
        calls = [call for each in self.journals.values() for call in each.read()]
        if not calls:
            wrong.append("no brick has written a journal of calls")
        wrong += self.writers.judge(calls, {name: each.connected for name, each in self.journals.items()})
        if wrong:
            raise AssertionError("\n".join(wrong[:20]))
        self.work.check()


def play(injuries, begun):
    """Harms and heals in time."""
    events = sorted([(injury.begins, 0, injury) for injury in injuries] + [(injury.ends, 1, injury) for injury in injuries],
                    key=lambda event: event[:2])
    for moment, healed, injury in events:
        time.sleep(max(0, begun + moment - time.monotonic()))
        (injury.heal if healed else injury.harm)()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--first", type=int, default=1)
    asked = parser.parse_args()
    kept, number = f"/var/tmp/pnfsrdma-ha-failed.{asked.seed}", 0
    print(f"seed {asked.seed}", flush=True)
    try:
        with trial(asked.bin, clients=len(CLIENTS), kept_logs=kept) as system:
            watched = Watched(system.start())
            watched.check()
            for number in range(asked.first, asked.first + asked.rounds):
                injuries = Injuries(system).choose(random.Random(f"{asked.seed}/{number}"))
                begun = time.monotonic()
                print(f"{number} {system.serving().host} serves; {', '.join(map(str, injuries))}", flush=True)
                watched.injuries += [(begun, injury) for injury in injuries]
                play(injuries, begun)
                healed = time.monotonic()
                system.wait_until_settled()
                watched.goes_on(time.monotonic())
                again = time.monotonic()
                watched.check()
                files, database = watched.work.gaps(begun)
                print(f"  longest wait: files {files:.1f} s, database {database:.1f} s; {again - healed:.1f} s until all was as before; "
                      f"{time.monotonic() - begun:.0f} s in all", flush=True)
            watched.work.end()
            watched.work.check(everything=True)
            for worker in (watched.sizes, *watched.locks.values()):
                worker.end()
            if found := system.check_media():
                raise AssertionError("\n".join(found))
    except Exception as error:
        print(f"FAILED: seed {asked.seed}, round {number}: {error}\nlogs: {kept}", flush=True)
        return 1
    writers = watched.writers
    print(f"{asked.rounds} rounds, nothing is lost; {writers.calls} calls to bricks under {len(writers.claims)} epochs of "
          f"{len({start for _, start in writers.claims.values()})} starts, {writers.late} of them late")
    return 0


if __name__ == "__main__":
    sys.exit(main())
