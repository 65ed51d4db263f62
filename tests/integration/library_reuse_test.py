#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libpnfsrdma against the real daemons: memory that was one file's and is another's. Whoever had the first open reaches
nothing of the second, through a mount and without one.

usage: library_reuse_test.py BIN_DIRECTORY
"""
import contextlib
import itertools
import json
import os
import subprocess
import threading
import time
import unittest

from library_case import MIB, Case  # first: see there
import cluster
import pnfsrdma


class Reused(Case):
    options = {"pool_size": "128M", "lease_seconds": 5}
    OLD, NEW = 24 * MIB, b"n" * MIB

    def reach(self):
        self.server = super().reach()
        self.mount = self.cluster.mount()
        return str(self.mount.path)

    def tearDown(self):
        with contextlib.suppress(OSError):
            self.client.close()

    def setUp(self):
        super().setUp()
        self.other = self.cluster.mount("actimeo=0", name="other")
        (self.mount / "old").write_bytes(b"o" * self.OLD)
        self.stop = threading.Event()

    def cli(self, *words):
        told = subprocess.run([str(self.cluster.bin / "pnfsrdma"), "--socket", f"{self.cluster.home}/console.sock", "--json", *words],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(told.returncode, 0, told.stderr)
        return json.loads(told.stdout) if told.stdout.strip() else None

    def fill(self):
        """The other mount writes files until nothing is free, and they have got the memory of the old one."""
        made, until = itertools.count(), time.monotonic() + 40
        while self.written() < 128 * MIB - self.OLD + 4 * MIB and time.monotonic() < until:
            with contextlib.suppress(OSError):
                (self.other / f"new{next(made)}").write_bytes(self.NEW * 4)

    def written(self):
        return sum(path.stat().st_size for path in self.other.path.glob("new*"))

    def check(self):
        """The new files have what their writer wrote."""
        found = 0
        for path in sorted(self.other.path.glob("new*")):
            content = path.read_bytes()
            self.assertEqual(content.count(b"n"), len(content), f"{path.name} has bytes of others")
            found += len(content)
        self.assertGreaterEqual(found, 128 * MIB - self.OLD + 4 * MIB, "they have got the memory of the old one")

    def work(self, client, memory):
        """Reads and overwrites (of a few blocks: where the file was cut it grows again) of the old file without end, by a queue: what
        was read."""
        seen, places = set(), range(0, self.OLD, MIB)
        reads, writes = memory[:8 * MIB], memory[8 * MIB:]
        writes[:] = b"w" * len(writes)
        with contextlib.suppress(OSError), client.open("old", os.O_RDWR) as file, client.queue(16) as queue:
            self.begun.set()
            for turn in itertools.count():
                operations = []
                for i in range(8):
                    at = places[(turn * 8 + i) % len(places)]
                    operations.append(file.operation(pnfsrdma.READ, reads[i * MIB:(i + 1) * MIB], at, 0, i))
                    operations.append(file.operation(pnfsrdma.WRITE, writes[i * 4096:(i + 1) * 4096], (turn * 8 + i) % 512 * 4096, 0, 8 + i))
                queue.submit(operations)
                done = 0
                while done < 16:
                    for each in queue.reap(16, 120):
                        done += 1
                        if each.user_data < 8 and each.result > 0:
                            piece = bytes(reads[each.user_data * MIB:each.user_data * MIB + each.result])
                            seen |= {byte for byte in b"onw\0" if byte in piece}
                if self.stop.is_set():
                    return seen
        return seen

    def beside(self, source, change):
        """The bytes that were read by who had the old file open, while `change` took its memory away and others got it."""
        self.begun = threading.Event()
        outcome = []
        client = pnfsrdma.connect(source)
        memory = client.alloc(9 * MIB)
        worker = threading.Thread(target=lambda: outcome.append(self.work(client, memory)))
        worker.start()
        self.begun.wait(30)
        time.sleep(0.5)
        change()
        self.fill()
        time.sleep(1)
        self.stop.set()
        worker.join(100)
        self.assertFalse(worker.is_alive())
        client.free(memory)
        with contextlib.suppress(OSError):
            client.close()
        self.check()
        self.assertIn(ord("o"), outcome[0])
        self.assertNotIn(ord("n"), outcome[0], "bytes of another file")

    def test_a_file_that_another_host_cuts(self):
        self.beside(self.source, lambda: os.truncate(self.other / "old", 0))

    def test_the_same_by_a_connection_to_the_server(self):
        self.beside(self.server, lambda: os.truncate(self.other / "old", 0))

    def test_a_layout_is_revoked_and_the_file_is_cut(self):
        def change():
            self.assertTrue(self.cli("layout", "list", "--path", "/old"))
            self.cli("layout", "revoke", "--path", "/old", "--yes")
            os.truncate(self.other / "old", 0)
        self.beside(self.source, change)

    def expel_all_but_the_other(self):
        """Who has the removed file open, and keeps its memory by that."""
        os.unlink(self.other / "old")
        time.sleep(1.5)
        for each in self.cli("client", "list"):
            if each["id"] not in self.known:
                self.cli("client", "expel", each["id"], "--yes")

    def test_a_file_of_an_expelled_client_is_removed(self):
        self.expelled(self.source)

    def test_the_same_of_a_connection_to_the_server(self):
        self.client.close()
        self.expelled(self.server)
        self.client = pnfsrdma.connect(self.source)

    def expelled(self, source):
        # Which client the other mount is: the server's list is a second old at most.
        time.sleep(1.5)
        before = {each["id"] for each in self.cli("client", "list")}
        self.other = self.cluster.mount("actimeo=0", name="another")
        cluster.wait_until(lambda: len({each["id"] for each in self.cli("client", "list")} - before) == 1, 20, "it is in the list")
        self.known = {each["id"] for each in self.cli("client", "list")} - before
        self.beside(source, self.expel_all_but_the_other)

    def test_what_a_file_was_never_given_is_zeros(self):
        """Memory that had a secret in it is another file's, who has written a few bytes of it."""
        (self.mount / "old").write_bytes(b"secret--" * (self.OLD // 8))
        os.unlink(self.mount / "old")
        self.fill()
        for path in self.other.path.glob("new*"):
            path.unlink()
        cluster.wait_until(lambda: not list(self.mount.path.glob("new*")), 20, "they are gone")
        for number, source in enumerate((self.source, self.server)):
            with pnfsrdma.connect(source) as client, client.open(f"file{number}", os.O_RDWR | os.O_CREAT) as file:
                file.truncate(16 * MIB)
                for at in range(1000, 16 * MIB, 2 * MIB):
                    file.pwrite(b"x", at)
                memory = client.alloc(MIB)
                for at in range(0, 16 * MIB, MIB):
                    self.assertEqual(file.preadinto(memory, at), MIB)
                    self.assertEqual(set(bytes(memory)) - {0, ord("x")}, set(), at)
                client.free(memory)


if __name__ == "__main__":
    unittest.main()
