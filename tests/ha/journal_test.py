#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The judge of the bricks' journals notices what it is there for."""
import pathlib
import tempfile
import unittest

from journal import Call, Journal, Writers, may_have_held_up

A, B, A_AGAIN = "10.87.0.14:1001", "10.87.0.15:1001", "10.87.0.14:1002"
CONNECTED = {"brick-1": {}, "brick-2": {}}


def call(brick, peer, procedure, epoch, moment, status="ok", took=0):
    return Call(brick, peer, procedure, epoch, status, moment - took, moment)


def judged(*calls, held_up=False):
    return Writers(lambda peer, _: peer, lambda *_: held_up).judge(calls, CONNECTED)


class Judged(unittest.TestCase):
    def test_one_after_the_other(self):
        self.assertEqual(judged(call("brick-1", A, "claim", 1, 1), call("brick-1", A, "alloc", 1, 2), call("brick-1", B, "claim", 2, 3),
                                call("brick-1", A, "alloc", 1, 4, "stale-epoch"), call("brick-1", B, "expose", 2, 5)), [])

    def test_a_brick_that_does_something_for_the_one_before(self):
        self.assertEqual(len(judged(call("brick-1", A, "claim", 1, 1), call("brick-1", B, "claim", 2, 3),
                                    call("brick-1", A, "alloc", 1, 4), held_up=True)), 1)

    def test_taking_access_away_may_end_behind_the_next_claim_and_not_begin(self):
        for took, wrong in ((2, 0), (0, 1)):
            calls = (call("brick-1", A, "claim", 1, 1), call("brick-1", B, "claim", 2, 3), call("brick-1", A, "withdraw", 1, 4, took=took))
            self.assertEqual(len(judged(*calls)), wrong)

    def test_what_writes_memory_has_done_so_when_it_fails(self):
        for procedure, wrong in (("zero", 1), ("copy", 1), ("persist", 1), ("expose", 0)):
            calls = (call("brick-1", A, "claim", 1, 1), call("brick-1", B, "claim", 2, 3), call("brick-1", A, procedure, 1, 4, "io"))
            self.assertEqual(len(judged(*calls, held_up=True)), wrong)

    def test_an_injury_holds_up_what_comes_soon_behind_its_end(self):
        for came, late in ((9, False), (11, True), (14, True), (16.9, True), (17.1, False)):
            self.assertEqual(may_have_held_up(10, 13, came), late, came)

    def test_a_claim_that_goes_back(self):
        self.assertEqual(len(judged(call("brick-1", A, "claim", 5, 1), call("brick-1", A, "claim", 4, 3))), 1)

    def test_an_epoch_that_was_given_twice(self):
        self.assertEqual(len(judged(call("brick-1", A, "claim", 1, 1), call("brick-2", B, "claim", 1, 1))), 1)

    def test_a_call_without_a_claim(self):
        self.assertEqual(len(judged(call("brick-1", A, "alloc", 1, 1))), 1)

    def test_somebody_else_under_the_same_epoch(self):
        self.assertEqual(len(judged(call("brick-1", A, "claim", 1, 1), call("brick-1", B, "alloc", 1, 2))), 1)

    def test_an_epoch_for_a_start_that_had_lost_the_lead(self):
        self.assertEqual(len(judged(call("brick-1", A, "claim", 1, 1), call("brick-1", B, "claim", 2, 2), call("brick-2", A, "claim", 3, 2))), 1)

    def test_another_start_may_lead_again(self):
        self.assertEqual(judged(call("brick-1", A, "claim", 1, 1), call("brick-1", B, "claim", 2, 2), call("brick-1", A_AGAIN, "claim", 3, 3)), [])

    def test_who_writes_to_another_brick_when_the_next_one_does(self):
        calls = [call("brick-1", A, "claim", 1, 1), call("brick-2", A, "claim", 2, 1), call("brick-1", B, "claim", 3, 3), call("brick-2", A, "alloc", 2, 4)]
        self.assertEqual(len(judged(*calls)), 1)
        self.assertEqual(judged(*calls, held_up=True), [])

    def test_calls_are_judged_by_those_of_before(self):
        writers = Writers(lambda peer, _: peer, lambda *_: False)
        self.assertEqual(writers.judge([call("brick-1", A, "claim", 1, 1), call("brick-2", A, "claim", 2, 1)], CONNECTED), [])
        self.assertEqual(writers.judge([call("brick-1", B, "claim", 3, 3)], CONNECTED), [])
        self.assertEqual(len(writers.judge([call("brick-2", A, "alloc", 2, 4)], CONNECTED)), 1)


class Read(unittest.TestCase):
    def test_whole_lines_since_the_last_time(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "log"
            path.write_text("2026-11-30T08:54:06.123 info brick: control-connected peer=10.87.0.14:1001 tls=mds-a\n"
                            "2026-11-30T08:54:06.130 debug brick: call peer=10.87.0.14:1001 procedure=claim epoch=5 status=ok microseconds=2000\n"
                            "2026-11-30T08:54:06.140 debug brick: call peer=10.87.0.14:1001 procedure=alloc epoch=4 st")
            journal = Journal("brick-1", path)
            claim, = journal.read()
            self.assertEqual((claim.peer, claim.procedure, claim.epoch, claim.status), (A, "claim", 5, "ok"))
            self.assertAlmostEqual(claim.answered - claim.came, 0.002, places=5)
            self.assertAlmostEqual(claim.answered - journal.connected[A], 0.007, places=3)
            with open(path, "a") as log:
                log.write("atus=stale-epoch microseconds=7\n2026-11-30T08:54:06.150 info brick: stopping\n")
            self.assertEqual([(each.procedure, each.status) for each in journal.read()], [("alloc", "stale-epoch")])
            self.assertEqual(journal.read(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
