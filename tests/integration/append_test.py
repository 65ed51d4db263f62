#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""O_APPEND: the only writer of a file asks the server where it ends a few times, not before each write; and nothing that
two clients append is lost or written over.

usage: append_test.py BIN_DIRECTORY
"""
import os
import sys
import time
import unittest

from cluster import Cluster

BIN = sys.argv.pop(1)
MIB = 1 << 20
LINE = 100


def line(who, number):
    return f"{who} {number:8}".encode().ljust(LINE - 1, b".") + b"\n"


class Append(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="1G", lease_seconds=5).start_all()
        cls.a, cls.b = (cls.cluster.mount("flush_after=0,layoutstats_timer=0", name=name) for name in "ab")
        for mount in (cls.a, cls.b):
            (mount / f"first.{mount.name}").write_bytes(bytes(MIB))  # the brick is connected from here on

    @classmethod
    def tearDownClass(cls):
        cls.a.unmount()
        cls.b.unmount()
        cls.cluster.close()

    def paths(self):
        name = self.id().rsplit(".", 1)[-1]
        return self.a / name, self.b / name

    @staticmethod
    def open(path):
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def calls(self, mount, work):
        before = mount.wait_until_quiet()
        begun = time.monotonic()
        work()
        seconds = time.monotonic() - begun
        after = mount.wait_until_quiet()
        counts = {name: count - before["mds_operations"].get(name, 0) for name, count in after["mds_operations"].items()
                  if count != before["mds_operations"].get(name, 0)}
        all_calls = after["mds_calls"] - before["mds_calls"]
        print(f"{self.id().rsplit('.', 1)[-1]}: {all_calls} calls, {seconds * 1000:.1f} ms, {counts}")
        return all_calls, counts

    def append(self, descriptor, who, numbers):
        for number in numbers:
            self.assertEqual(os.write(descriptor, line(who, number)), LINE)

    def test_the_only_writer_asks_a_few_times_not_before_each_write(self):
        path, other = self.paths()
        for before in (0, MIB):
            path.write_bytes(bytes(before))
            file = self.open(path)
            calls, counts = self.calls(self.a, lambda: self.append(file, "a", range(1000)))
            os.close(file)
            self.assertLessEqual(calls, 30)
            self.assertLessEqual(counts.get("GETATTR", 0), 30)
            self.assertEqual(other.read_bytes()[before:], b"".join(line("a", i) for i in range(1000)))

    def test_beside_another_writer_each_one_asks_as_ever(self):
        path, other = self.paths()
        path.write_bytes(bytes(MIB))
        mine, theirs = self.open(path), self.open(other)
        calls, counts = self.calls(self.a, lambda: self.append(mine, "a", range(1000)))
        self.assertGreaterEqual(counts["GETATTR"], 1000)
        self.assertLessEqual(calls, 1050)
        os.close(theirs)
        os.close(mine)
        self.assertEqual(other.read_bytes()[MIB:], b"".join(line("a", i) for i in range(1000)))

    def test_what_the_only_writer_appended_is_there_before_another_one_has_opened_the_file(self):
        path, other = self.paths()
        path.write_bytes(bytes(MIB))
        mine = self.open(path)
        self.append(mine, "a", range(100))
        theirs = self.open(other)
        self.assertEqual(os.fstat(theirs).st_size, MIB + 100 * LINE)
        self.append(theirs, "b", range(100))
        os.fsync(theirs)
        self.append(mine, "a", range(100, 200))
        os.close(mine)
        os.close(theirs)
        self.assertEqual(path.read_bytes()[MIB:], b"".join(
            [line("a", i) for i in range(100)] + [line("b", i) for i in range(100)]
            + [line("a", i) for i in range(100, 200)]))

    def test_two_in_turns_lose_nothing(self):
        path, other = self.paths()
        path.write_bytes(bytes(MIB))
        expected = []

        def turns():
            for i in range(200):
                for who, at in (("a", path), ("b", other)):
                    file = self.open(at)
                    self.append(file, who, range(3 * i, 3 * i + 3))
                    os.close(file)
                    expected.extend(line(who, n) for n in range(3 * i, 3 * i + 3))
        calls, _ = self.calls(self.a, turns)
        # LOOKUP + OPEN, three GETATTRs, LAYOUTCOMMIT, CLOSE; LAYOUTGET and LAYOUTRETURN, for each writes behind the other's end.
        self.assertLessEqual(calls, 200 * 9)
        self.assertEqual(path.read_bytes()[MIB:], b"".join(expected))
        self.assertEqual(other.read_bytes()[MIB:], b"".join(expected))

    def test_two_with_the_file_open_in_turns_lose_what_is_flushed_never(self):
        path, other = self.paths()
        path.write_bytes(bytes(MIB))
        mine, theirs = self.open(path), self.open(other)
        expected = []
        for i in range(100):
            for who, file in (("a", mine), ("b", theirs)):
                self.append(file, who, [i])
                os.fsync(file)
                expected.append(line(who, i))
        os.close(mine)
        os.close(theirs)
        self.assertEqual(path.read_bytes()[MIB:], b"".join(expected))

    def test_an_append_goes_to_the_end_that_another_client_has_set(self):
        path, other = self.paths()
        for before in (MIB, 8192):
            path.write_bytes(bytes(before))
            mine = self.open(path)
            self.append(mine, "a", range(10))
            os.truncate(other, 100)
            self.append(mine, "b", range(10))
            self.assertEqual(os.fstat(mine).st_size, 100 + 10 * LINE)
            os.truncate(other, 2 * MIB)
            self.append(mine, "c", range(10))
            os.truncate(path, 300)
            self.append(mine, "d", range(10))
            os.close(mine)
            self.assertEqual(other.read_bytes(), bytes(100) + b"".join(line("b", i) for i in range(2))
                             + b"".join(line("d", i) for i in range(10)))

    def test_the_end_is_ones_own_again_when_the_other_has_closed(self):
        path, other = self.paths()
        path.write_bytes(bytes(MIB))
        mine = self.open(path)
        self.append(mine, "a", range(10))
        theirs = self.open(other)
        self.append(mine, "a", range(10, 20))
        os.close(theirs)
        time.sleep(11)
        self.append(mine, "a", range(20, 60))  # asks for it again, more and more seldom
        _, counts = self.calls(self.a, lambda: self.append(mine, "a", range(60, 1060)))
        os.close(mine)
        self.assertLessEqual(counts.get("GETATTR", 0), 100)
        self.assertEqual(other.read_bytes()[MIB:], b"".join(line("a", i) for i in range(1060)))

    def test_a_restart_of_the_server_loses_nothing(self):
        path, other = self.paths()
        path.write_bytes(bytes(MIB))
        mine = self.open(path)
        self.append(mine, "a", range(50))
        os.fsync(mine)  # the new process closes what it inherits, and would wait for itself
        self.cluster.kill("mds")
        self.cluster.start_mds()
        self.append(mine, "a", range(50, 100))
        os.fsync(mine)
        with open(other, "ab") as theirs:
            theirs.write(line("b", 0))
        self.append(mine, "a", range(100, 150))
        os.close(mine)
        self.assertEqual(other.read_bytes()[MIB:], b"".join(
            [line("a", i) for i in range(100)] + [line("b", 0)] + [line("a", i) for i in range(100, 150)]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
