#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What operations of libpnfsrdma cost a program in steady state, as the tables of library/README.md say: allocations, and system
calls other than the transport's.

usage: library_costs_test.py BIN_DIRECTORY
"""
import os
import time
import unittest

from library_case import BIN, Case, MIB, pnfsrdma  # first: see there
import console_client

CHAIN = 16
# Operations of a queue, one at a time and CHAIN with one doorbell; what waits; what asks a brick by a message.
QUEUED = ("queue_read", "queue_write", "queue_durable", "chain_read", "chain_write", "chain_durable")
WAITED = ("read", "write", "durable", "flush")
MESSAGES = ("word", "signal", "verify")


class Costs(Case):
    def tearDown(self):
        self.client.close()

    def measure(self, source):
        done = self.run_program(BIN / "library_costs", source)
        if done.returncode == 1 and "ptrace" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        costs = {}
        for line in done.stdout.splitlines():
            name, operations, allocations, *calls = line.split()
            costs[name] = (int(operations), int(allocations), {call: int(count) for call, count in (each.rsplit("=", 1) for each in calls)})
        print(source, *(f"\n  {name}: {each}" for name, each in costs.items()), flush=True)
        self.assertEqual(set(costs), {*QUEUED, *WAITED, *MESSAGES, "map_sync"})
        return costs

    def assert_only(self, name, calls, *allowed):
        self.assertEqual(set(calls) - set(allowed), set(), f"{name}: {calls}")

    def assert_no_allocations(self, name, operations, allocations):
        # A thread in the background may have something to do meanwhile.
        self.assertLess(allocations, operations / 20, name)

    def test_of_a_connection_to_the_server(self):
        costs = self.measure(self.source)
        transport = ("sendmsg/socket", "recvmsg/socket", "recv/socket")
        for name in (*QUEUED, "map_sync"):
            operations, allocations, calls = costs[name]
            self.assert_no_allocations(name, operations, allocations)
            # It sleeps until the answer is there: poll(2), and what wakes it where another thread has taken that.
            self.assert_only(name, calls, *transport, "poll/", "read/[eventfd]", "write/[eventfd]", "futex/")
            self.assertLessEqual(calls["sendmsg/socket"], operations * 1.05, f"{name}: one doorbell")
            self.assertLessEqual(calls["poll/"], operations * 2)
        for name in WAITED:
            operations, allocations, calls = costs[name]
            self.assert_no_allocations(name, operations, allocations)
            self.assert_only(name, calls, *transport, "futex/")
            trips = calls["sendmsg/socket"] / operations
            self.assertLessEqual(trips, 1.1, f"{name}: a sync of each write comes with it soon")
        for name, most in (("word", 0), ("signal", 1), ("verify", 10)):
            operations, allocations, calls = costs[name]
            self.assert_no_allocations(name, operations, allocations - most * operations)
            if most == 0:  # else the allocator may ask the kernel for memory
                self.assert_only(name, calls, *transport, "futex/", "poll/")

    def test_through_a_mount(self):
        mount = self.cluster.mount()
        costs = self.measure(str(mount.path))
        for name in (*QUEUED, "map_sync"):
            operations, allocations, calls = costs[name]
            self.assert_no_allocations(name, operations, allocations)
            # One to wake the mount, two for the program's sleep; none of them while both are awake.
            self.assert_only(name, calls, "write/[eventfd]", "read/[eventfd]", "poll/")
            for call, most in (("write/[eventfd]", 1), ("read/[eventfd]", 2), ("poll/", 2)):
                self.assertLessEqual(calls.get(call, 0), operations * most * 1.05, f"{name}: {call}")
        for name, calls in (("read", {"pread/file": 1}), ("write", {"pwritev2/file": 1}), ("durable", {"pwritev2/file": 1}),
                            ("flush", {"pwritev2/file": 1, "fdatasync/file": 1}), *((name, {"ioctl/file": 1}) for name in MESSAGES)):
            operations, allocations, made = costs[name]
            self.assert_no_allocations(name, operations, allocations - (operations if name == "verify" else 0))
            self.assertEqual(made, {call: count * operations for call, count in calls.items()}, name)
        mount.unmount()

    def flushes_of_the_brick(self):
        """FLUSHes and commit messages, as the server hears of them every now and then: when that is over."""
        def now():
            counters = console_client.Console(self.cluster.home / "console.sock").items("/bricks")[0]["counters"]
            return counters["rdma_flushes"] + counters["commit_messages"]
        before = None
        while before != (before := now()):
            time.sleep(2.5)
        return before

    def test_a_chain_has_one_flush(self):
        """Counted by the brick: a chain of ranges that lie close together, one of ranges that do not, and one of durable writes."""
        mount = self.cluster.mount()
        with self.client.open("chain", os.O_RDWR | os.O_CREAT) as file:
            file.pwrite(bytes(16 * MIB), 0)
            file.fsync()
        for source in (self.source, str(mount.path)):
            with pnfsrdma.connect(source) as client, client.open("chain", os.O_RDWR) as file, file.map(0, 16 * MIB) as image, client.queue(64) as queue:
                memory = client.alloc(CHAIN * 64)
                ways = {"near": lambda image=image: image.sync([(i * 4096, 64) for i in range(CHAIN)]),
                        "far": lambda image=image: image.sync([(i * MIB, 64) for i in range(CHAIN)]),
                        "queue": lambda file=file, queue=queue, memory=memory: self.write_durably(file, queue, memory)}
                for name, way in ways.items():
                    way()  # connects, and has the layout
                    before = self.flushes_of_the_brick()
                    for _ in range(20):
                        way()
                    made = self.flushes_of_the_brick() - before
                    print(source, name, made, flush=True)
                    self.assertGreaterEqual(made, 20)
                    # The mount may have its look at the ring while the program is still at it.
                    self.assertLessEqual(made, 20 if source == self.source else 24, f"{source}, {name}")
                client.free(memory)
        mount.unmount()

    def write_durably(self, file, queue, memory):
        queue.submit([file.operation(pnfsrdma.WRITE, memory[i * 64:(i + 1) * 64], i * 4096, flags=pnfsrdma.DURABLE) for i in range(CHAIN)])
        done = 0
        while done < CHAIN:
            for completion in queue.reap(CHAIN):
                self.assertEqual(completion.result, 64)
                done += 1


if __name__ == "__main__":
    unittest.main()
