#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The owner of a partition and its brick, by a client that is written after docs/protocol.md and uses the TLS of openssl(1).

usage: owner_protocol_test.py BIN_DIRECTORY
"""
import os
import pathlib
import random
import shutil
import signal
import sys
import threading
import time
import unittest

from owner_client import (AGAIN, CONFLICT, INVALID, NO_SPACE, NOT_FOUND, OK, QUOTA, READ_ONLY, RECLAIM, REVOKED, UNKNOWN, OwnerClient,
                          Refused)
from partitions import BLOCK, Partitions

BIN = pathlib.Path(sys.argv.pop(1))
if not shutil.which("openssl"):
    print("skipped: there is no openssl(1)")
    raise SystemExit(77)


class Case(unittest.TestCase):
    lease_seconds = 30

    def setUp(self):
        self.partitions = Partitions(BIN, self.lease_seconds)
        self.addCleanup(self.partitions.close)
        self.partitions.create("tank")
        self.partitions.start("tank")

    def open(self, partition="tank", at=None, key=None):
        """One that is not attached yet."""
        return OwnerClient(self.partitions.control[at or partition], partition, self.partitions.key(key or partition))

    def owner(self, partition="tank"):
        owner = self.open(partition)
        self.addCleanup(owner.__exit__, None, None, None)
        self.assertEqual(owner.attach(), OK)
        return owner


class Protocol(Case):
    def test_what_an_owner_does(self):
        one = self.owner()
        self.assertEqual(one.call(0), b"")
        self.assertEqual(one.call(17, program=0x20524D42, version=2), 1, "the program of an MDS is not there")
        status, at = one.alloc(2, tag=77)
        self.assertEqual(status, OK)
        self.assertEqual(one.alloc(2, tag=77), (OK, at), "the same call, the same answer")
        self.assertEqual(one.map(1, at, 2), OK)
        self.assertEqual(one.write(1, BLOCK - 3, b"hello!"), OK)
        self.assertEqual(one.pread(1, BLOCK - 3, 6), b"hello!")
        self.assertEqual(one.map(2, at, 1, writable=False), CONFLICT)
        self.assertEqual(one.map(2, at + 2 * BLOCK, 1), NOT_FOUND)
        self.assertEqual(one.map(2, at + 1, 1), INVALID)
        self.assertEqual(one.release(1), OK)
        self.assertEqual(one.map(3, at, 1, writable=False), OK)
        self.assertEqual(one.write(3, 0, b"no"), READ_ONLY)
        self.assertEqual(one.alloc(14, tag=78)[0], NO_SPACE)
        self.assertEqual(one.free(at, 2), OK)
        self.assertEqual((one.list(), one.pread(3, 0, 4)), ({}, REVOKED))

    def test_unmap_takes_blocks_from_whoever_has_them(self):
        one, other = self.owner(), self.owner()
        at = one.alloc(2, 1)[1]
        self.assertEqual(one.map(1, at, 2), OK)
        self.assertEqual(one.write(1, 0, b"mine"), OK)
        self.assertEqual(other.map(1, at, 1), CONFLICT)
        self.assertEqual(other.unmap(at + BLOCK, 1), OK)
        self.assertEqual(one.write(1, 0, b"late"), REVOKED)
        self.assertEqual(one.map(1, at, 2, how=AGAIN), REVOKED)
        self.assertEqual(other.map(1, at, 2), OK)
        self.assertEqual(other.pread(1, 0, 4), b"mine")

    def test_another_key_is_refused_and_so_is_another_name(self):
        self.partitions.create("pond", "32M", "--quota", "8M")
        self.partitions.start("pond")
        pond = self.owner("pond")
        self.assertEqual([pond.alloc(5, 1)[0], pond.alloc(4, 2)[0], pond.alloc(1, 3)[0]], [QUOTA, OK, QUOTA])
        for partition, at, key in (("tank", "tank", "pond"), ("pond", "pond", "tank"), ("pond", "tank", "pond"), ("tank", "pond", "tank")):
            with self.subTest(partition=partition, at=at, key=key):
                with self.assertRaises(Refused):
                    with self.open(partition, at, key) as stranger:
                        stranger.attach()
        # Who is there is not put off; who comes, for a second.
        self.assertEqual(pond.list(), {0: 4})
        time.sleep(1.2)
        self.assertEqual(self.owner().list(), {})
        self.assertIn("owner-refused", self.partitions.log("tank"))


class Leases(Case):
    lease_seconds = 2

    def test_who_is_silent_loses_what_it_had_mapped(self):
        one, other = self.owner(), self.owner()
        at = one.alloc(1, 1)[1]
        self.assertEqual(one.map(1, at, 1), OK)
        end = time.monotonic() + 20
        while (status := other.map(1, at, 1)) == CONFLICT and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(status, OK)
        self.assertIsNone(one.list())
        self.assertEqual((one.free(at, 1), one.attach(one.attachment)), (UNKNOWN, UNKNOWN))

    def test_a_mapping_is_had_again_after_a_restart_unless_somebody_else_had_the_blocks(self):
        one = self.owner()
        at = one.alloc(2, 1)[1]
        self.assertEqual((one.map(20, at, 2), one.write(20, 0, b"kept")), (OK, OK))
        before = one.epoch
        self.partitions.stop("tank", signal.SIGKILL)
        self.partitions.start("tank")
        again, other = self.owner(), self.owner()
        self.assertEqual(again.epoch, before + 1)
        self.assertEqual(again.map(20, at, 2, how=RECLAIM, epoch=before - 1), REVOKED, "of an epoch before that")
        self.assertEqual(again.map(20, at, 2, how=RECLAIM, epoch=before), OK)
        self.assertEqual(again.pread(20, 0, 4), b"kept")
        self.assertEqual(other.map(1, at, 2), CONFLICT)
        self.assertEqual((again.release(20), other.map(1, at, 2), other.release(1)), (OK, OK, OK))
        self.assertEqual(again.map(21, at, 2, how=RECLAIM, epoch=before), REVOKED)


    def test_what_was_taken_away_is_not_had_again_after_a_restart(self):
        one, other = self.owner(), self.owner()
        at = one.alloc(1, 1)[1]
        self.assertEqual((one.map(20, at, 1), other.unmap(at, 1)), (OK, OK))
        self.assertEqual((other.map(1, at, 1), other.release(1)), (OK, OK))
        before = one.epoch
        self.partitions.stop("tank", signal.SIGKILL)
        self.partitions.start("tank")
        again = self.owner()
        self.assertEqual(again.epoch, before + 2)
        self.assertEqual(again.map(20, at, 1, how=RECLAIM, epoch=before), REVOKED)


class Crashes(Case):
    """The brick is killed between any two calls, and within them."""

    def test_nothing_acknowledged_is_lost_and_no_block_is_in_two_hands(self):
        seed = int(os.environ.get("SEED", time.time_ns() % 100_000))
        print(f"seed {seed}")
        self.chance, self.held, self.tag = random.Random(seed), {}, 0
        for _ in range(int(os.environ.get("ROUNDS", "12"))):
            with self.open() as owner:
                self.assertEqual(owner.attach(), OK)
                killer = threading.Timer(self.chance.random() * 0.6, self.partitions.bricks["tank"].kill)
                killer.start()
                cut_short = self.work_until_the_end(owner)
                killer.join()
            self.partitions.bricks.pop("tank").wait(60)
            self.partitions.check("tank")
            self.partitions.start("tank")
            with self.open() as owner:
                self.assertEqual(owner.attach(), OK)
                self.settle(owner, cut_short)
                self.look(owner)

    def work_until_the_end(self, owner):
        """What was under way then: ("alloc", tag, count), ("free", address, count) or None."""
        under_way = None
        try:
            while True:
                if self.held and self.chance.random() < 0.45:
                    at = self.chance.choice(list(self.held))
                    under_way = ("free", at, self.held[at][0])
                    self.assertEqual(owner.free(at, self.held[at][0]), OK)
                    del self.held[at]
                    under_way = None
                    continue
                self.tag += 1
                count, content = self.chance.randint(1, 3), os.urandom(32)
                under_way = ("alloc", self.tag, count)
                status, at = owner.alloc(count, self.tag)
                under_way = None
                if status == NO_SPACE:
                    continue
                self.assertEqual(status, OK)
                self.assertNotIn(at, self.held)
                self.held[at] = (count, None)
                self.assertEqual(owner.map(self.tag, at, count), OK)
                self.assertEqual(owner.pread(self.tag, (count - 1) * BLOCK, 32), bytes(32), "blocks are zeros")
                self.assertEqual(owner.write(self.tag, (count - 1) * BLOCK, content), OK)
                self.held[at] = (count, content)
                self.assertEqual(owner.release(self.tag), OK)
        except Refused:
            return under_way

    def settle(self, owner, cut_short):
        """As an owner does it: an alloc is repeated, of a free one looks what there is."""
        if cut_short is None:
            return
        what, number, count = cut_short
        if what == "alloc":
            status, at = owner.alloc(count, number)
            self.assertIn(status, (OK, NO_SPACE))
            if status == OK:
                self.held[at] = (count, None)
            return
        for block in range(count):
            self.assertIn(owner.free(number + block * BLOCK, 1), (OK, NOT_FOUND))
        del self.held[number]

    def look(self, owner):
        listed = {at + i * BLOCK for at, count in owner.list().items() for i in range(count)}
        self.assertEqual(listed, {at + i * BLOCK for at, (count, _) in self.held.items() for i in range(count)})
        for at, (count, content) in self.held.items():
            if content:
                self.tag += 1
                self.assertEqual(owner.map(self.tag, at, count, writable=False), OK)
                self.assertEqual(owner.pread(self.tag, (count - 1) * BLOCK, 32), content)
                self.assertEqual(owner.release(self.tag), OK)


if __name__ == "__main__":
    unittest.main()
