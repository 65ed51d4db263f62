#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The owner of a partition by libpnfsrdma, with real bricks.

usage: library_blocks_test.py BIN_DIRECTORY
"""
import errno
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

from library_case import BIN, LIBRARY, PRELOADED, pnfsrdma
import cluster
from partitions import BLOCK, Partitions

ROOT = pathlib.Path(__file__).parents[2]
# A program with the library needs its sanitizer's runtime from the start.
SANITIZERS = ["-fsanitize=address,undefined"] if "asan" in PRELOADED else ["-fsanitize=thread"] if "tsan" in PRELOADED else []


class Case(unittest.TestCase):
    lease_seconds = 30

    def setUp(self):
        self.partitions = Partitions(BIN, self.lease_seconds)
        self.addCleanup(self.partitions.close)
        self.partitions.create("tank")
        self.partitions.start("tank")

    def address(self, partition="tank"):
        return f"127.0.0.1:{self.partitions.control[partition]}"

    def open(self, address=None, partition="tank", key=None):
        return pnfsrdma.open_blocks(address or self.address(), partition, self.partitions.key(key or partition), "proto=tcp")

    def owner(self):
        blocks = self.open()
        self.addCleanup(self.close, blocks)
        return blocks

    @staticmethod
    def close(blocks):
        """Whatever is mapped."""
        try:
            blocks.close()
        except OSError as error:
            assert error.errno == errno.EBUSY, error

    def map(self, blocks, address, count, flags=pnfsrdma.MAP_WRITE):
        mapping = blocks.map(address, count, flags)
        self.addCleanup(mapping.close)
        return mapping

    def assert_fails(self, number, call, *arguments):
        with self.assertRaises(OSError) as caught:
            call(*arguments)
        self.assertEqual(errno.errorcode[caught.exception.errno], errno.errorcode[number], caught.exception)
        return str(caught.exception)


class Owners(Case):
    def test_blocks_are_allocated_listed_and_freed(self):
        blocks = self.owner()
        told = blocks.stat()
        self.assertEqual((told.block_size, told.quota, told.allocated, told.epoch), (BLOCK, 0, 0, 1))
        self.assertEqual((blocks.transport, blocks.durability), ("iwarp", "process"))
        at = blocks.alloc(2, tag=77)
        self.assertEqual(blocks.alloc(2, tag=77), at, "the same call, the same answer")
        self.assertEqual(blocks.alloc(1, 64 * BLOCK), 64 * BLOCK)
        self.assert_fails(errno.EEXIST, blocks.alloc, 1, 64 * BLOCK)
        self.assert_fails(errno.ENOSPC, blocks.alloc, told.blocks)
        self.assert_fails(errno.EINVAL, blocks.alloc, 1, 12345)
        self.assertEqual(blocks.list(), [(at, 2), (64 * BLOCK, 1)])
        self.assertEqual(blocks.list(most=1), [(at, 2)])
        self.assertEqual(blocks.list(at + 2 * BLOCK), [(64 * BLOCK, 1)])
        self.assertEqual(blocks.stat().allocated, 3)
        blocks.free(at, 2)
        self.assert_fails(errno.ENOENT, blocks.free, at, 2)
        self.assertEqual(blocks.list(), [(64 * BLOCK, 1)])

    def test_what_is_written_is_read_by_another_mapping(self):
        blocks, other = self.owner(), self.owner()
        at = blocks.alloc(3)
        data = os.urandom(2 * BLOCK + 4321)
        with blocks.map(at, 3) as mapping:
            self.assertEqual(mapping.read(4096, 3 * BLOCK - 4096), bytes(4096), "blocks are zeros")
            mapping.write(data, 1000)
            mapping.flush(0, 3 * BLOCK)
            mapping.write(b"durable", BLOCK - 3, durable=True)
            self.assert_fails(errno.EINVAL, mapping.write, b"12", 3 * BLOCK - 1)
            self.assert_fails(errno.EBUSY, blocks.close)
        data = data[:BLOCK - 1003] + b"durable" + data[BLOCK - 996:]
        mapping = self.map(other, at, 3, pnfsrdma.MAP_READ)
        self.assertEqual(mapping.read(len(data), 1000), data)
        self.assertEqual(mapping.read(0, 0), b"")
        self.assert_fails(errno.EBADF, mapping.write, b"no", 0)
        self.assert_fails(errno.EBADF, mapping.flush, 0, 1)
        self.assert_fails(errno.EBADF, mapping.fetch_and_add, 0, 1)

    def test_mappings_exclude_each_other_unless_they_are_shared(self):
        blocks, other = self.owner(), self.owner()
        at = blocks.alloc(2)
        with blocks.map(at, 2):
            self.assert_fails(errno.EBUSY, other.map, at + BLOCK, 1, pnfsrdma.MAP_READ)
        shared = pnfsrdma.MAP_WRITE | pnfsrdma.MAP_SHARED
        one, two = self.map(blocks, at, 1, shared), self.map(other, at, 1, shared)
        one.write(b"by one", 0)
        self.assertEqual(two.read(6, 0), b"by one")
        self.assert_fails(errno.ENOENT, blocks.map, at + 2 * BLOCK, 1)
        self.assert_fails(errno.EINVAL, blocks.map, at, 1, 8)

    def test_words_are_changed_by_the_brick(self):
        blocks, other = self.owner(), self.owner()
        at, shared = blocks.alloc(1), pnfsrdma.MAP_WRITE | pnfsrdma.MAP_SHARED
        mappings = [self.map(each, at, 1, shared) for each in (blocks, other)]

        def count(mapping):
            for _ in range(200):
                mapping.fetch_and_add(8, 1)
        threads = [threading.Thread(target=count, args=(mapping,)) for mapping in mappings * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(mappings[0].fetch_and_add(8, 0, durable=True), 800)
        self.assertEqual(mappings[0].compare_and_swap(8, 800, 5, durable=True), 800)
        self.assertEqual(mappings[1].compare_and_swap(8, 800, 6), 5)
        self.assertEqual(mappings[1].read(8, 8), (5).to_bytes(8, "little"))
        self.assert_fails(errno.EINVAL, mappings[0].fetch_and_add, 4, 1)

    def test_unmap_revokes_whoever_has_it(self):
        blocks, other = self.owner(), self.owner()
        at = blocks.alloc(2)
        mapping = self.map(blocks, at, 2)
        mapping.write(b"mine", 0, durable=True)
        other.unmap(at + BLOCK, 1)
        self.assert_fails(errno.ESTALE, mapping.read, 4, 0)
        self.assert_fails(errno.ESTALE, mapping.write, b"late", 0)
        self.assert_fails(errno.ESTALE, mapping.flush, 0, 4)
        again = self.map(other, at, 2)
        self.assertEqual(again.read(4, 0), b"mine")
        blocks.free(at, 2)
        self.assert_fails(errno.ESTALE, again.read, 4, 0)
        # A connection on which a dead handle was used is not the end of the others.
        at = blocks.alloc(1)
        self.assertEqual(self.map(blocks, at, 1).read(4, 0), bytes(4))

    def test_unmap_revokes_under_way(self):
        blocks, other = self.owner(), self.owner()
        at = blocks.alloc(1)
        mapping, outcome = self.map(blocks, at, 1), []

        def write_until_revoked():
            try:
                while True:
                    mapping.write(b"x" * 65536, 0)
            except OSError as error:
                outcome.append(error.errno)
        thread = threading.Thread(target=write_until_revoked)
        thread.start()
        time.sleep(0.2)
        other.unmap(at, 1)
        taken = self.map(other, at, 1)
        taken.write(bytes(65536), 0)
        thread.join(30)
        self.assertEqual(outcome, [errno.ESTALE])
        self.assertEqual(taken.read(65536, 0), bytes(65536))

    def test_another_key_is_refused(self):
        self.partitions.create("pond")
        self.partitions.start("pond")
        self.assertIn("another key", self.assert_fails(errno.EACCES, self.open, None, "tank", "pond"))
        # Whoever comes from a host that had a wrong key is put off for a second, and comes again.
        self.assertEqual(self.open().list(), [])
        self.assert_fails(errno.EACCES, self.open, self.address("pond"), "tank")
        self.assert_fails(errno.EINVAL, self.open, None, "no name", "tank")
        self.partitions.key("pond").chmod(0o644)
        self.assert_fails(errno.EPERM, self.open, self.address("pond"), "pond")
        self.partitions.stop("pond")
        self.partitions.key("pond").chmod(0o600)
        self.assert_fails(errno.ECONNREFUSED, self.open, self.address("pond"), "pond")

    def test_by_its_socket(self):
        blocks = self.open(str(self.partitions.home / "tank.sock"))
        self.assertEqual(blocks.list(), [])
        blocks.close()


class Programs(Case):
    def test_the_manuals_example_works(self):
        page = (ROOT / "packaging/man/pnfsrdma_blocks_open.3.scd").read_text()
        source = self.partitions.home / "example.c"
        source.write_text(re.search(r"# EXAMPLES\n\n```\n(.*?)```", page, re.S)[1].replace("\\\\", "\\"))
        program = source.with_suffix("")
        flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'library'}", f"-L{LIBRARY.parent}", f"-Wl,-rpath,{LIBRARY.parent}"]
        subprocess.run(["gcc", *flags, *SANITIZERS, source, "-o", program, "-lpnfsrdma"], check=True)
        done = subprocess.run([program, self.address(), "tank", self.partitions.key("tank")], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "hello from 0\n"), done.stderr)

    def test_cpp_has_the_same(self):
        source = self.partitions.home / "owner.cc"
        source.write_text("""#include <pnfsrdma.hpp>
int main(int, char** arguments) {
  pnfsrdma::blocks blocks(arguments[1], "tank", arguments[2]);
  const auto at = blocks.alloc(2);
  pnfsrdma::mapping mapping(blocks, at, 2, PNFSRDMA_MAP_WRITE);
  mapping.write("text", 5, 100, true);
  char text[5] = "";
  mapping.read(text, 5, 100);
  std::uint64_t word = 1;
  if (std::string(text) != "text" || mapping.compare_and_swap(0, word, 2) || word != 0 || mapping.fetch_and_add(0, 3) != 0) return 1;
  mapping.flush(0, 8);
  if (blocks.list().at(0).count != 2 || blocks.stat().allocated != 2) return 2;
  blocks.unmap(at, 1);
  try {
    mapping.read(text, 5, 100);
  } catch (const std::system_error& error) {
    return error.code().value() == ESTALE ? 0 : 3;
  }
  return 4;
}
""")
        program = source.with_suffix("")
        flags = ["-std=c++17", f"-I{ROOT / 'library'}", f"-L{LIBRARY.parent}", f"-Wl,-rpath,{LIBRARY.parent}"]
        subprocess.run(["g++", *flags, *SANITIZERS, source, "-o", program, "-lpnfsrdma"], check=True)
        done = subprocess.run([program, self.address(), self.partitions.key("tank")], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


class Restarts(Case):
    def test_a_mapping_outlives_the_brick(self):
        blocks = self.owner()
        at = blocks.alloc(2)
        mapping, other = self.map(blocks, at, 1), self.map(blocks, at + BLOCK, 1)
        mapping.write(b"kept", 0, durable=True)
        mapping.write(b"written", 100)
        for round_ in range(3):
            self.partitions.stop("tank", signal.SIGKILL)
            self.partitions.start("tank")
            self.assertEqual(mapping.read(4, 0), b"kept")
            mapping.write(b"%d" % round_, 50, durable=True)
            self.assertEqual(blocks.stat().epoch, 2 + round_)
        mapping.flush(0, BLOCK)
        self.assertEqual((mapping.read(7, 100), mapping.read(1, 50)), (b"written", b"2"))
        # One that nobody has used meanwhile is there, too.
        self.assert_fails(errno.EBUSY, blocks.map, at + BLOCK, 1)
        self.assertEqual(other.read(4, 0), bytes(4))
        self.assertEqual(blocks.list(), [(at, 2)])

    def test_what_was_taken_away_does_not_return_with_the_brick(self):
        blocks, other, third = self.owner(), self.owner(), self.owner()
        at = blocks.alloc(3)
        # Nobody of these but the one that takes it away knows of that.
        idle, bystander = self.map(blocks, at, 1), self.map(third, at + BLOCK, 1)
        bystander.write(b"here", 0)
        other.unmap(at, 1)
        with other.map(at, 1) as mapping:
            mapping.write(b"others", 0, durable=True)
        self.partitions.stop("tank", signal.SIGKILL)
        self.partitions.start("tank")
        self.assert_fails(errno.ESTALE, idle.write, b"mine!!", 0)
        self.assertEqual(self.map(other, at, 1).read(6, 0), b"others")
        # Nor what was not known to be spared by it.
        self.assert_fails(errno.ESTALE, bystander.read, 4, 0)

    def test_calls_wait_for_a_brick_that_comes_back(self):
        blocks = self.owner()
        at = blocks.alloc(1)
        mapping = self.map(blocks, at, 1)
        self.partitions.stop("tank", signal.SIGKILL)
        results = []
        calls = [lambda: results.append(mapping.read(4, 0)), lambda: results.append(blocks.alloc(1)),
                 lambda: mapping.write(b"late", 8, durable=True)]
        threads = [threading.Thread(target=call) for call in calls]
        for thread in threads:
            thread.start()
        time.sleep(1)
        self.assertEqual(results, [])
        self.partitions.start("tank")
        for thread in threads:
            thread.join(30)
        self.assertEqual(len(results), 2)
        self.assertEqual(mapping.read(4, 8), b"late")

    def test_nothing_acknowledged_is_lost_with_the_brick(self):
        blocks = self.owner()
        at = blocks.alloc(1)
        mapping, done, stop = self.map(blocks, at, 1), [], threading.Event()

        def work():
            number = 0
            while not stop.is_set():
                number += 1
                mapping.write(number.to_bytes(8, "little"), 8 * (number % 1000), durable=True)
                done.append(number)
        thread = threading.Thread(target=work)
        thread.start()
        for _ in range(5):
            time.sleep(0.3)
            self.partitions.stop("tank", signal.SIGKILL)
            self.partitions.start("tank")
        time.sleep(0.5)
        stop.set()
        thread.join(60)
        image = mapping.read(8000, 0)
        for number in done[-1000:]:
            self.assertEqual(int.from_bytes(image[8 * (number % 1000):][:8], "little"), number)
        print(f"{len(done)} durable writes")


class Leases(Case):
    lease_seconds = 2

    def test_who_is_idle_keeps_what_is_mapped(self):
        blocks = self.owner()
        mapping = self.map(blocks, blocks.alloc(1), 1)
        mapping.write(b"idle", 0)
        time.sleep(5)
        self.assertEqual(mapping.read(4, 0), b"idle")
        self.assertNotIn("attachment-silent", self.partitions.log("tank"))

    def test_who_has_seen_what_was_taken_away_keeps_the_rest(self):
        blocks, other = self.owner(), self.owner()
        at = blocks.alloc(2)
        lost, kept = self.map(blocks, at, 1), self.map(blocks, at + BLOCK, 1)
        kept.write(b"kept", 0)
        other.unmap(at, 1)
        time.sleep(1.5)  # each lease is renewed
        self.partitions.stop("tank", signal.SIGKILL)
        self.partitions.start("tank")
        self.assertEqual(kept.read(4, 0), b"kept")
        self.assert_fails(errno.ESTALE, lost.read, 4, 0)

    def test_who_was_silent_for_the_lease_has_lost_it(self):
        blocks, other = self.owner(), self.owner()
        at = blocks.alloc(1)
        mapping = self.map(blocks, at, 1)
        # The brick stands still: nobody is heard for longer than the lease, on either side.
        self.partitions.stop("tank", signal.SIGKILL)
        time.sleep(3)
        self.partitions.start("tank")
        self.assert_fails(errno.ESTALE, mapping.read, 4, 0)
        self.assertEqual(self.map(other, at, 1).read(4, 0), bytes(4))


    def test_who_has_stood_still_does_not_get_it_again_behind_a_restart(self):
        other = self.owner()
        at = other.alloc(1)
        with self.child(at) as child:
            child.send_signal(signal.SIGSTOP)
            cluster.wait_until(lambda: "attachment-silent" in self.partitions.log("tank"), 30, "the lease is over")
            with other.map(at, 1) as mapping:
                mapping.write(b"others", 0, durable=True)
            child.send_signal(signal.SIGCONT)
            time.sleep(1.2)  # it is heard again, before the brick ends
            self.partitions.stop("tank", signal.SIGKILL)
            self.partitions.start("tank")
            answer = child.communicate("read\n", timeout=60)[0]
        self.assertEqual(answer, f"{errno.ESTALE}\n")

    def child(self, at):
        """A process that has mapped a block, and reads it when it is told to."""
        program = """import pnfsrdma, sys
mapping = pnfsrdma.open_blocks(sys.argv[1], "tank", sys.argv[2], "proto=tcp").map(int(sys.argv[3]), 1)
print("mapped", flush=True)
sys.stdin.readline()
try:
    print(mapping.read(4, 0))
except OSError as error:
    print(error.errno)
"""
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "library/python"), "LD_PRELOAD": PRELOADED, "ASAN_OPTIONS": "detect_leaks=0"}
        child = subprocess.Popen([sys.executable, "-c", program, self.address(), self.partitions.key("tank"), str(at)], env=environment,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), "mapped\n")
        return child


if __name__ == "__main__":
    unittest.main()
