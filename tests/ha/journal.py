# SPDX-License-Identifier: Apache-2.0
"""The bricks' journals of calls (event `call`): whether one MDS only could change something at any time.

Each claim of a brick has an epoch of its own, which the MDS takes out of the metadata: so epochs order what all starts of all MDSs did.
"""
import collections
import datetime
import pathlib
import re
import time
from dataclasses import dataclass, field

LINE = re.compile(rb"^(\S+) \w+ brick: (call|control-connected) peer=(\S+)"
                  rb"(?: procedure=(\S+) epoch=(\d+) status=(\S+) microseconds=(\d+))?")
TAKES_AWAY = {"withdraw", "close-session"}  # who has them done late has written nothing
WRITES = {"zero", "copy", "persist"}  # what they have done when they fail is done
RETRANSMISSION_SECONDS = 1
CLOCK_SECONDS = 0.005  # the log's times are in ms


def may_have_held_up(begins, ends, came):
    """Whether what was sent before such an injury may arrive at that time: TCP waits twice as long for each next try, so that the first one
    behind the end comes when as much time has passed as it had lasted."""
    return begins < came <= ends + (ends - begins) + RETRANSMISSION_SECONDS


@dataclass
class Call:
    brick: str
    peer: str
    procedure: str
    epoch: int
    status: str
    came: float  # by time.monotonic(), as is
    answered: float

    def __str__(self):
        return f"{self.brick}: {self.procedure} of {self.peer} under epoch {self.epoch}, come {self.came:.3f}, {self.status}"


class Journal:
    """Of one brick, read bit by bit."""

    def __init__(self, brick, path):
        self.brick, self.path, self.begun = brick, pathlib.Path(path), 0
        self.connected = {}  # peer -> when

    def read(self):
        """The calls that were answered since the last time, in order."""
        offset = time.monotonic() - time.time()
        with open(self.path, "rb") as log:
            log.seek(self.begun)
            text = log.read()
        text = text[:text.rfind(b"\n") + 1]
        self.begun += len(text)
        calls = []
        for line in text.splitlines():
            if not (found := LINE.match(line)):
                continue
            when, event, peer, procedure, epoch, status, took = (part.decode() if part else "" for part in found.groups())
            moment = datetime.datetime.fromisoformat(when).timestamp() + offset
            if event == "control-connected":
                self.connected[peer] = moment
            elif procedure:
                calls.append(Call(self.brick, peer, procedure, int(epoch), status, moment - int(took) / 1e6, moment))
        return calls


@dataclass
class Writers:
    """Judges them. `start_of(peer, moment)`: which start of which MDS connected from there then. `held_up(peer, brick, came)`: whether what
    came then may have been sent long before, as the network between the two, or one of them, had stood still."""
    start_of: object
    held_up: object
    claimed: dict = field(default_factory=dict)  # brick -> its last claim
    claims: dict = field(default_factory=dict)  # epoch -> (claim, start)
    calls: int = 0
    late: int = 0

    def judge(self, calls, connected):
        """`calls`: of all bricks, each in its order; `connected`: brick -> peer -> when. Returns what is wrong."""
        wrong = []
        done = [call for call in calls if call.status == "ok" or (call.status == "io" and call.procedure in WRITES)]
        self.calls += len(done)
        for call in done:
            wrong += self.claim(call, connected) if call.procedure == "claim" else self.order(call)
        wrong += self.in_turn()
        ends = self.ends()
        for call in done:
            if call.procedure not in TAKES_AWAY and call.epoch in self.claims:
                wrong += self.is_in_time(call, *ends.get(self.claims[call.epoch][1], (None, None)))
        return wrong

    def claim(self, call, connected):
        before, wrong = self.claimed.get(call.brick), []
        if before and call.epoch <= before.epoch:
            wrong.append(f"{call}; it was claimed with {before.epoch} before")
        if call.epoch in self.claims:
            wrong.append(f"{call}; and {self.claims[call.epoch][0]}")
        self.claimed[call.brick] = call
        self.claims[call.epoch] = call, self.start_of(call.peer, connected[call.brick].get(call.peer, call.came))
        return wrong

    def order(self, call):
        """What a brick does, it does for who has claimed it last; or ends for the one before, who had begun it by then."""
        now = self.claimed.get(call.brick)
        if now and (call.epoch, call.peer) == (now.epoch, now.peer):
            return []
        if now and call.procedure in TAKES_AWAY and call.came <= now.answered + CLOCK_SECONDS:
            return []
        return [f"{call}; it is claimed by {now.peer if now else 'nobody'} with {now.epoch if now else 0}"]

    def in_turn(self):
        """A start that has seen another one's epoch gets none any more."""
        wrong, ended, now = [], set(), None
        for epoch in sorted(self.claims):
            start = self.claims[epoch][1]
            if start != now:
                ended.add(now)
                now = start
                if start in ended:
                    wrong.append(f"{self.claims[epoch][0]}, {start}: another one had epochs since")
        return wrong

    def ends(self):
        """start -> (when the next one had claimed its first brick, that claim)."""
        first = collections.OrderedDict()
        for epoch in sorted(self.claims):
            claim, start = self.claims[epoch]
            first.setdefault(start, claim)
        starts = list(first)
        return {start: (first[following].answered, first[following]) for start, following in zip(starts, starts[1:])}

    def is_in_time(self, call, end, claim):
        if end is None or call.came <= end + CLOCK_SECONDS:
            return []
        self.late += 1
        if self.held_up(call.peer, call.brick, call.came):
            return []
        return [f"{call}; since {end:.3f} another one writes: {claim}"]
