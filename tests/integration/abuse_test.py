#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Strangers at the server's door, small: its memory stays within the budget, a healthy client goes on, no brick is
lost. tests/bench/abuse.py measures the same in full.
"""
import json
import multiprocessing
import resource
import sys
import time

import attacks
import cluster

HEALTHY, GREEDY, STRANGER = "127.0.0.1", "127.0.0.2", "127.1.0.1"
BUDGET_MIB = 64
# What the heap keeps between the pieces, and what is outside the budget: sockets, tables, a sanitizer's quarantine.
SLACK_MIB = 96
SCALES = {"unread-nulls": 0.5, "half-records": 0.2, "tiny-halves": 0.2, "reply-caches": 0.05, "flood": 0.1,
          "empty-fragments": 0.1}


def attack(name, port, address, scale, done, end):
    held = attacks.ATTACKS[name](port, address, scale)
    done.set()
    end.wait()
    for one in held:
        one.close()


def sanitized(bin_directory):
    with open(f"{bin_directory}/pnfsrdma-mdsd", "rb") as program:
        return b"__asan_init" in program.read()


def survives(servers, name, address):
    pid = servers.processes["mds"].pid
    healthy = attacks.Healthy(servers.nfs_port, HEALTHY)
    healthy.start()
    before = attacks.rss_mib(pid)
    done, end = multiprocessing.Event(), multiprocessing.Event()
    attacker = multiprocessing.Process(target=attack, args=(name, servers.nfs_port, address, SCALES[name], done, end))
    attacker.start()
    peak = before
    # An attacker whose connections the server has ended is done, too.
    while attacker.is_alive() and not done.wait(0.05):
        peak = max(peak, attacks.rss_mib(pid))
    healthy.take()
    cluster.wait_until(lambda: len(healthy.times) >= 20 or healthy.failed, 60, "the healthy client goes on")
    peak = max(peak, attacks.rss_mib(pid))
    # A newcomer finds the door open as well.
    attacks.Client(servers.nfs_port, HEALTHY, b"newcomer").close()
    end.set()
    attacker.join()
    healthy.stop()
    print(f"{name} from {address}: RSS {before:.0f} MiB before, {peak:.0f} at most", flush=True)
    assert healthy.failed is None, f"{name}: the healthy client failed: {healthy.failed}"
    if not sanitized(servers.bin):
        assert peak - before < BUDGET_MIB + SLACK_MIB, f"{name}: {before:.0f} MiB became {peak:.0f}"
    assert servers.processes["mds"].poll() is None
    assert "brick-lost" not in servers.log("mds"), name


def denied_to_strangers(port):
    try:
        attacks.Client(port, STRANGER, b"stranger")
    except attacks.Refused as refused:
        assert str(refused) == "denied", refused
        return
    raise AssertionError("a host that no export admits made a session")


def ends_half_a_request(port):
    one = attacks.tiny_halves(port, GREEDY, 0)[0]
    one.setblocking(True)
    one.settimeout(30)
    begun = time.monotonic()
    assert one.recv(1) == b"", "half a request ends its connection"
    assert time.monotonic() - begun > 1, "but not at once"


def main():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with cluster.Cluster(sys.argv[1], pool_size="256M", memory_budget_mib=BUDGET_MIB, connections_per_address=1000,
                         stalled_request_seconds=3) as servers:
        config = json.loads((servers.home / "mds.json").read_text())
        config["exports"] = [{"path": "/", "root_squash": False, "insecure": True,
                              "clients": ["127.0.0.0/16"]}]
        servers.write_config("mds", config)
        servers.format()
        servers.start_brick()
        servers.start_mds()
        denied_to_strangers(servers.nfs_port)
        ends_half_a_request(servers.nfs_port)
        for name in attacks.ATTACKS:
            survives(servers, name, GREEDY)
        survives(servers, "reply-caches", STRANGER)
    print("passed")


if __name__ == "__main__":
    main()
