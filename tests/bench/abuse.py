#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The abuse table: each attack of tests/integration/attacks.py against a real metadata server and brick, with what a
healthy client waits before, during and after, the turns of the server's loop during the attack (99.99 % of them took at most
so long, and all), and the server's memory.

    tests/bench/abuse.py BIN-DIRECTORY [--budget MIB] [--scale SHARE] [--only ATTACK] [--after SECONDS]
                         [--pin | --elsewhere]

An attacker is on another host; here it takes the server's processors, too. With --pin it has one of its own, and
the healthy client (SCHED_FIFO) does not wait for one. With --elsewhere the attack is at a second metadata server on the same
host: what the client waits during it is the host's share.
"""
import argparse
import contextlib
import json
import multiprocessing
import os
import pathlib
import resource
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import loop_turns  # noqa: E402
import attacks  # noqa: E402
import cluster  # noqa: E402

HEALTHY, GREEDY, STRANGER = "127.0.0.1", "127.0.0.2", "127.1.0.1"


def attack(name, port, address, scale, processor, done, end):
    raise_descriptors()
    if processor is not None:
        os.sched_setaffinity(0, {processor})
    held = attacks.ATTACKS[name](port, address, scale)
    done.set()
    end.wait()
    for one in held:
        one.close()


def raise_descriptors():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Peak(threading.Thread):
    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.mib, self.stopping = pid, 0, threading.Event()

    def run(self):
        while not self.stopping.wait(0.05):
            self.mib = max(self.mib, attacks.rss_mib(self.pid))


@contextlib.contextmanager
def started(options):
    """A brick and its metadata server."""
    mds = {"memory_budget_mib": options.budget} if options.budget else {}
    with cluster.Cluster(options.bin, pool_size="256M", **mds) as servers:
        config = json.loads((servers.home / "mds.json").read_text())
        config["exports"] = [{"path": "/", "root_squash": False, "insecure": True,
                              "clients": ["127.0.0.0/16"]}]
        servers.write_config("mds", config)
        servers.format()
        servers.start_brick()
        servers.start("mds", servers.nfs_port)
        yield servers


def measure(name, address, options):
    with started(options) as servers, contextlib.ExitStack() as stack:
        attacked = stack.enter_context(started(options)) if options.elsewhere else servers
        pid = attacked.processes["mds"].pid
        healthy = attacks.Healthy(servers.nfs_port, HEALTHY, at_once=options.pin)
        healthy.start()
        time.sleep(3)
        before, rss_before = healthy.take(), attacks.rss_mib(pid)
        turns_before = loop_turns.read(attacked.home / "console.sock")
        peak = Peak(pid)
        peak.start()
        done, end = multiprocessing.Event(), multiprocessing.Event()
        arguments = (name, attacked.nfs_port, address, options.scale, options.attackers_processor, done, end)
        attacker = multiprocessing.Process(target=attack, args=arguments, daemon=True)
        attacker.start()
        done.wait(120)
        time.sleep(2)
        during = healthy.take()
        end.set()
        attacker.join(30)
        time.sleep(1)
        healthy.take()
        time.sleep(options.after)
        after, rss_after = healthy.take(), attacks.rss_mib(pid)
        peak.stopping.set()
        healthy.stop()
        turns = loop_turns.between(turns_before, loop_turns.read(attacked.home / "console.sock"))
        lost = servers.log("mds").count("brick-lost")
        times = [f"{attacks.percentile(times, 0.99) * 1000:.2f}" for times in (before, during, after)]
        print(f"| {name}{' (no export)' if address == STRANGER else ''} | {' | '.join(times)} | "
              f"{max(during, default=float('nan')) * 1000:.0f} | "
              f"{loop_turns.at_most(turns, 0.9999) * 1000:g} | {loop_turns.at_most(turns, 1) * 1000:g} | {rss_before:.0f} | {peak.mib:.0f} | {rss_after:.0f} | "
              f"{lost} |{' healthy client failed: ' + str(healthy.failed) if healthy.failed else ''}", flush=True)
        for line in servers.log("mds").splitlines():
            if "slow-turn" in line:
                print(f"  {line}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--budget", type=int, help="memory_budget_mib (the server's default without it)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the connections")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--pin", action="store_true", help="the attacker on one processor, the servers on another")
    place.add_argument("--elsewhere", action="store_true", help="the attack is at another server on this host")
    parser.add_argument("--only", choices=attacks.ATTACKS)
    parser.add_argument("--after", type=float, default=15, help="seconds between the attack's end and the last look")
    options = parser.parse_args()
    options.attackers_processor = None
    raise_descriptors()
    if options.pin:
        processor, *_, options.attackers_processor = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {processor})
    print("| attack | p99 before, ms | during | after | longest | turns p99.99, ms | all turns | RSS before, MiB | peak | after | bricks lost |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in [options.only] if options.only else attacks.ATTACKS:
        measure(name, GREEDY, options)
        if name == "reply-caches":
            measure(name, STRANGER, options)


if __name__ == "__main__":
    main()
