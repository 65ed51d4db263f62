#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The judges of random_faults.py notice what they are there for."""
import unittest

import history
from work import Operation

SIZES = [Operation(number, number, number + 0.1) for number in range(1, 6)]


class Looks(unittest.TestCase):
    def test_a_size_that_was_exceeded_before_the_question_is_stale(self):
        self.assertEqual(len(history.stale_looks(SIZES, [Operation(1, 2.2, 2.3)])), 1)

    def test_a_size_that_was_on_its_way_may_be_seen_or_not(self):
        self.assertEqual(history.stale_looks(SIZES, [Operation(1, 2.01, 2.05), Operation(2, 2.01, 2.05)]), [])

    def test_a_size_that_nobody_has_asked_for_is_wrong(self):
        self.assertEqual(len(history.stale_looks(SIZES, [Operation(4, 2.2, 2.3)])), 1)


class Locks(unittest.TestCase):
    def test_one_after_the_other(self):
        self.assertEqual(history.held_twice({"a": [Operation(1, 1, 2), Operation(3, 3, 4)], "b": [Operation(2, 2, 3)]}), [])

    def test_two_at_once(self):
        self.assertEqual(len(history.held_twice({"a": [Operation(1, 1, 2.5)], "b": [Operation(2, 2, 3)]})), 1)

    def test_a_number_made_twice(self):
        self.assertEqual(len(history.held_twice({"a": [Operation(1, 1, 2)], "b": [Operation(1, 2, 3)]})), 1)


class Leads(unittest.TestCase):
    def test_one_after_the_other(self):
        self.assertEqual(history.leads_at_once({"a": ([0], [Operation(0, 1, 2), Operation(0, 3, 4)]),
                                                "b": ([0], [Operation(0, 4, 5), Operation(0, 6, 7)])}), [])

    def test_one_between_two_answers_of_the_other(self):
        self.assertEqual(len(history.leads_at_once({"a": ([0], [Operation(0, 1, 2), Operation(0, 8, 9)]),
                                                    "b": ([0], [Operation(0, 3, 4), Operation(0, 6, 7)])})), 1)

    def test_another_start_may_have_it_again(self):
        self.assertEqual(history.leads_at_once({"a": ([0, 7.5], [Operation(0, 1, 2), Operation(0, 8, 9)]),
                                                "b": ([0], [Operation(0, 3, 4), Operation(0, 6, 7)])}), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
