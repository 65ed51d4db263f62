# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with two MDSs, one function each: it does it, sees the workers go on, and puts all right again.

Each returns the moment from which on the gap counts. It fails if another one serves than should.
"""
import time
from dataclasses import dataclass
from typing import Callable

from installation import FENCED, SECONDS, wait_until

PAUSE_SECONDS = 15
NO_QUORUM_SECONDS = 10
BRICK_SECONDS = 5
LOOK_SECONDS = 4  # for what should do nothing


@dataclass
class Fault:
    name: str
    title: str
    play: Callable
    counted: str  # what the gap is


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def taken_over(lost, other):
    expect(other.has_said("ready"), f"{other.host} should serve instead of {lost.host}")


def wait_until_fenced(server, count):
    wait_until(lambda: len(server.ends) > count, SECONDS, f"{server.host} ends because it has lost the lead")
    expect(server.ends[-1][1] == FENCED, f"{server.host} ended with {server.ends[-1][1]}, not with {FENCED}")


def mds_killed(system, work):
    lost, other = system.serving(), system.standing_by()
    lost.kill()
    since = time.monotonic()
    work.goes_on(since)
    taken_over(lost, other)
    lost.start()
    return since


def mds_cut_off(system, work):
    lost, other = system.serving(), system.standing_by()
    ends = len(lost.ends)
    system.network.cut(lost.host)
    since = time.monotonic()
    work.goes_on(since)
    taken_over(lost, other)
    wait_until_fenced(lost, ends)
    system.network.join(lost.host)
    return since


def mds_paused(system, work):
    lost, other = system.serving(), system.standing_by()
    ends = len(lost.ends)
    lost.pause()
    since = time.monotonic()
    try:
        work.goes_on(since)
        taken_over(lost, other)
        time.sleep(max(0, since + PAUSE_SECONDS - time.monotonic()))
    finally:
        lost.go_on()
    wait_until_fenced(lost, ends)
    return since


def without_a_take_over(system, work, since):
    """The same MDS serves as before."""
    serving, ends = system.serving(), sum(len(server.ends) for server in system.servers.values())
    work.goes_on(since)
    time.sleep(max(0, since + LOOK_SECONDS - time.monotonic()))
    expect(system.serving() is serving and sum(len(server.ends) for server in system.servers.values()) == ends,
           "an MDS was fenced that should have gone on")


def etcd_leader_killed(system, work):
    lost = system.etcd.members[system.etcd.leader()]
    lost.kill()
    since = time.monotonic()
    without_a_take_over(system, work, since)
    lost.start()
    return since


def etcd_member_replaced(system, work):
    leader = system.etcd.leader()
    lost = next(name for name in system.etcd.members if name != leader)
    system.etcd.members[lost].kill()
    since = time.monotonic()
    without_a_take_over(system, work, since)
    system.etcd.replace(lost)
    system.etcd.wait_until_whole()
    without_a_take_over(system, work, time.monotonic())
    return since


def quorum_lost(system, work):
    lost = list(system.etcd.members.values())[:2]
    for member in lost:
        member.kill()
    time.sleep(NO_QUORUM_SECONDS)
    for member in lost:
        member.start()
    since = time.monotonic()
    work.goes_on(since)
    return since


def mds_restarted(system, work):
    lost = system.serving()
    since = time.monotonic()
    lost.stop()
    lost.start()
    work.goes_on(time.monotonic())
    return since


def brick_lost(system, work):
    lost = system.bricks["brick-1"]
    serving = system.serving()
    lost.kill()
    since = time.monotonic()
    time.sleep(BRICK_SECONDS)
    lost.start()
    work.goes_on(time.monotonic())
    expect(system.serving() is serving, "a lost brick should not change who serves")
    return since


FAULTS = [
    Fault("mds-killed", "The MDS that serves is killed, and its host with it", mds_killed, "until the other one served"),
    Fault("mds-cut-off", "The host of the MDS that serves is cut off: all its packets are lost", mds_cut_off, "until the other one served"),
    Fault("mds-paused", f"The MDS that serves is stopped for {PAUSE_SECONDS} s, and goes on", mds_paused, "until the other one served"),
    Fault("etcd-leader", "The member of etcd that leads is killed", etcd_leader_killed, "without a take-over"),
    Fault("etcd-member", "A member of etcd is lost with its disk, and replaced", etcd_member_replaced, "without a take-over"),
    Fault("quorum", f"Two members of etcd are lost, and back after {NO_QUORUM_SECONDS} s", quorum_lost, "from when they were back"),
    Fault("mds-restarted", "The MDS that serves is restarted in order", mds_restarted, "while it changed hands"),
    Fault("brick", f"A brick is killed, and started again after {BRICK_SECONDS} s", brick_lost, "with the time it was away"),
]


@dataclass
class Gap:
    files: float  # seconds that an operation waited, at most
    database: float
    served: float | None  # seconds until an MDS served that had not served before


def play(fault, system, work):
    """One fault, and all is as before."""
    since = fault.play(system, work)
    system.wait_until_settled()
    work.goes_on(time.monotonic())
    served = system.serving().when_said("ready") - since
    return Gap(*work.gaps(since), served if served > 0 else None)
