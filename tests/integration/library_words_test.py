#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libpnfsrdma against the real daemons: words that several programs change at once, also while connections are cut and
bricks come and go.

usage: library_words_test.py BIN_DIRECTORY
"""
import errno
import json
import os
import subprocess
import threading
import time
import unittest

from library_case import BIN, Case  # first: see there
import cluster
from cut_proxy import CutProxy
import pnfsrdma

WORD = 1 << 64


def word(file, offset):
    return int.from_bytes(file.pread(8, offset), "little")


class Words(Case):
    one_cluster = True

    def setUp(self):
        super().setUp()
        self.mount = self.cluster.mount("actimeo=0")

    def tearDown(self):
        self.client.close()
        self.mount.unmount()

    def shared(self, flags=0):
        file = self.client.open("shared", os.O_RDWR | os.O_CREAT | flags, 0o666)
        if file.stat().size < 4096:
            file.truncate(4096)
        return file

    def test_words_are_stored_compared_and_added_to(self):
        with self.shared() as file:
            self.assertEqual([file.fetch_and_add(8, 5), file.fetch_and_add(8, -1, durable=True), word(file, 8)], [0, 5, 4])
            self.assertEqual([file.compare_and_swap(8, 3, 9), word(file, 8)], [4, 4])
            self.assertEqual([file.compare_and_swap(8, 4, WORD - 1, durable=True), word(file, 8)], [4, WORD - 1])
            self.assertEqual([file.fetch_and_add(8, 2), word(file, 8)], [WORD - 1, 1])
            file.atomic_write(4088, 0x0102030405060708)
            self.assertEqual(file.pread(8, 4088), bytes([8, 7, 6, 5, 4, 3, 2, 1]))
            file.fsync()
        self.assertEqual((self.mount / "shared").read_bytes()[8:16], (1).to_bytes(8, "little"))
        with self.shared(os.O_DSYNC) as file:
            self.assertEqual(file.fetch_and_add(8, 1), 1)

    def test_what_is_wrong_is_said_and_changes_nothing(self):
        with self.shared() as file:
            self.assertIn("aligned", self.assert_fails(errno.EINVAL, file.fetch_and_add, 4, 1))
            self.assertIn("ends", self.assert_fails(errno.EINVAL, file.fetch_and_add, 4096, 1))
            self.assert_fails(errno.EINVAL, file.fetch_and_add, -8, 1)
            self.assert_fails(errno.EFBIG, file.fetch_and_add, (1 << 63) - 8, 1)
            with self.assertRaises(OverflowError):
                file.atomic_write(0, WORD)
            self.assertEqual(file.pread(4096, 0), bytes(4096))
            self.assertEqual(file.stat().size, 4096)
        with self.client.open("shared", os.O_RDONLY) as file:
            self.assert_fails(errno.EBADF, file.atomic_write, 0, 1)
        with self.client.open("shared", os.O_WRONLY) as file:
            self.assertIn("reading", self.assert_fails(errno.EBADF, file.fetch_and_add, 0, 1))
            file.atomic_write(0, 1)
        with self.client.open("shared", os.O_RDWR | os.O_APPEND) as file:
            self.assert_fails(errno.EBADF, file.atomic_write, 0, 2)

    def test_what_has_just_grown_has_words(self):
        with self.client.open("grows", os.O_RDWR | os.O_CREAT) as file:
            for at in range(0, 1 << 20, 1 << 16):
                file.pwrite(b"\x07" * 8, at)
                self.assertEqual(file.fetch_and_add(at, 1), int.from_bytes(b"\x07" * 8, "little"))
            file.fsync()
            self.assertEqual(word(file, 1 << 16), int.from_bytes(b"\x07" * 8, "little") + 1)

    def test_who_reads_through_the_page_cache_sees_each_change_of_its_mount(self):
        with self.shared() as file, open(self.mount / "shared", "rb", buffering=0) as reader:
            for turn in range(50):
                file.fetch_and_add(16, 1, durable=True)
                if self.source.startswith("/"):
                    self.assertEqual(int.from_bytes(os.pread(reader.fileno(), 8, 16), "little"), turn + 1)

    def test_both_kinds_of_connection_add_to_one_word(self):
        with self.shared() as file:
            def add():
                for _ in range(200):
                    file.fetch_and_add(24, 1)
            threads = [threading.Thread(target=add) for _ in range(4)]
            for thread in threads:
                thread.start()
            with pnfsrdma.connect(str(self.mount.path)) as other, other.open("shared", os.O_RDWR) as theirs:
                for _ in range(200):
                    theirs.fetch_and_add(24, 1)
            for thread in threads:
                thread.join()
            self.assertEqual(file.fetch_and_add(24, 0), 1000)

    def test_the_example_gives_each_number_once(self):
        tickets = BIN.parent / "examples" / "tickets"
        self.shared().close()
        command = [str(tickets), self.source, "shared"]
        user = {"user": os.geteuid(), "group": os.getegid()}
        processes = [subprocess.Popen([str(tickets), source, "shared", "take", "100"], stdout=subprocess.PIPE, text=True, **user)
                     for source in (self.source, str(self.mount.path)) * 2]
        numbers = [int(line) for process in processes for line in process.communicate(timeout=120)[0].split()]
        self.assertEqual([process.returncode for process in processes], [0] * 4)
        self.assertEqual(sorted(numbers), list(range(400)))
        self.assertEqual(self.run_program(*command, "sold").stdout, "400\n")
        self.assertEqual(self.run_program(*command, "close").returncode, 0)
        self.assertIn("has closed the roll", self.run_program(*command, "close").stderr)
        self.assertIn("is closed", self.run_program(*command, "take", "1").stderr)
        self.assertEqual(self.run_program(*command, "give").returncode, 2)


class CutOff(Case):
    """The way to the brick leads through a proxy."""
    options = {"pool_size": "256M"}

    def setUp(self):
        self.cluster = cluster.Cluster(BIN, **self.options)
        self.addCleanup(self.cluster.close)
        self.proxy = CutProxy(self.cluster.data_port)
        self.addCleanup(self.proxy.close)
        config = json.loads((self.cluster.home / "brick.json").read_text())
        config["data"]["advertise"] = [f"127.0.0.1:{self.proxy.port}"]
        self.cluster.write_config("brick", config)
        self.cluster.start_all()
        self.source = self.reach()
        self.client = pnfsrdma.connect(self.source)
        self.file = self.client.open("file", os.O_RDWR | os.O_CREAT)
        self.file.pwrite(bytes(4096), 0)
        self.file.fsync()

    def tearDown(self):
        self.file.close()
        self.client.close()

    def add_until(self, done, outcomes):
        while not done.is_set():
            try:
                self.file.fetch_and_add(8, 1, durable=len(outcomes) % 4 == 0)
                outcomes.append(0)
            except OSError as error:
                outcomes.append(error.errno)

    def add_while(self, disturb):
        """What became of each addition while that was done."""
        done = threading.Event()
        outcomes = [[] for _ in range(4)]
        threads = [threading.Thread(target=self.add_until, args=(done, each)) for each in outcomes]
        for thread in threads:
            thread.start()
        try:
            disturb()
        finally:
            done.set()
            for thread in threads:
                thread.join()
        return [outcome for each in outcomes for outcome in each]

    def test_a_change_whose_answer_is_lost_is_made_once(self):
        def cut_often():
            for _ in range(20):
                time.sleep(0.15)
                self.proxy.cut()
        before = self.proxy.accepted
        outcomes = self.add_while(cut_often)
        self.assertGreater(self.proxy.accepted - before, 5)
        self.assertLessEqual(set(outcomes), {0, errno.EAGAIN}, "nothing is unknown as long as the brick lives")
        self.assertEqual(word(self.file, 8), outcomes.count(0))
        self.assertGreater(outcomes.count(0), 50)

    def test_a_brick_that_was_started_anew_is_not_asked_again(self):
        def restart():
            for _ in range(2):
                time.sleep(0.5)
                self.cluster.kill("brick")
                self.cluster.start_brick()
                time.sleep(1)
        outcomes = self.add_while(restart)
        self.assertLessEqual(set(outcomes), {0, errno.EAGAIN, errno.EIO})
        value = word(self.file, 8)
        self.assertGreaterEqual(value, outcomes.count(0))
        self.assertLessEqual(value, outcomes.count(0) + outcomes.count(errno.EIO))
        self.file.fetch_and_add(8, 1, durable=True)
        self.assertEqual(word(self.file, 8), value + 1)


if __name__ == "__main__":
    unittest.main()
