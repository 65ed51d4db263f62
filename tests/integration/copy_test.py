#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""copy_file_range(2) where files cannot share memory (clone_test.py): the server copies, and what everybody sees afterwards.

usage: copy_test.py BIN_DIRECTORY
"""
import errno
import os
import random
import subprocess
import sys
import unittest

import cluster
from two_mounts import TwoMounts

BIN = sys.argv.pop(1)
MIB = 1 << 20


def copy_range(source, target, count, source_offset, target_offset):
    """All of it: one call may copy less."""
    done = 0
    while done < count:
        copied = os.copy_file_range(source, target, count - done, source_offset + done, target_offset + done)
        if copied == 0:
            break
        done += copied
    return done


class Copy(TwoMounts):
    bin = BIN
    daemons = {"pool_size": "1G"}

    def operations(self, name):
        return self.mount.statistics()["mds_operations"].get(name, 0)

    def test_the_server_copies(self):
        path, content = self.make("original", 150 * MIB + 4321)
        before = self.operations("COPY")
        with open(path, "rb") as source, open(self.mount / "copy", "wb") as target:
            target.write(content[:1])
            target.flush()
            self.assertEqual(copy_range(source.fileno(), target.fileno(), len(content) - 1, 1, 1), len(content) - 1)
        self.assertGreaterEqual(self.operations("COPY") - before, 3, "64 MiB a call")
        self.assertTrue((self.mount / "copy").read_bytes() == content)
        self.assertTrue((self.other / "copy").read_bytes() == content)
        for name in ("original", "copy"):
            (self.mount / name).unlink()

    def test_what_was_just_written_is_copied_and_what_the_target_had_is_replaced(self):
        content = os.urandom(300_000)
        with open(self.mount / "fresh", "wb+", buffering=0) as source, \
                open(self.mount / "target", "wb+", buffering=0) as target:
            source.write(content)
            target.write(b"t" * 500_000)
            self.assertEqual(copy_range(source.fileno(), target.fileno(), 300_000, 0, 1000), 300_000)
            expected = b"t" * 1000 + content + b"t" * 199_000
            self.assertTrue(os.pread(target.fileno(), 600_000, 0) == expected)
            self.assertTrue((self.other / "target").read_bytes() == expected)
            # Growth, then the writer goes on behind it.
            self.assertEqual(copy_range(source.fileno(), target.fileno(), 300_000, 0, 500_000), 300_000)
            self.assertEqual(os.fstat(target.fileno()).st_size, 800_000)
            os.pwrite(target.fileno(), b"end", 800_000)
            os.fsync(target.fileno())
        self.assertTrue((self.other / "target").read_bytes() == expected + content + b"end")

    def test_an_append_behind_a_copy_goes_behind_it(self):
        path, content = self.make("lines", 100_000)
        for _ in range(6):  # enough of them to be trusted with the end of the file
            with open(self.mount / "log", "ab", buffering=0) as log:
                log.write(b"line\n")
        with open(self.mount / "log", "ab+", buffering=0) as log, open(path, "rb") as source, \
                open(self.mount / "log", "rb+", buffering=0) as target:
            for _ in range(6):
                log.write(b"line\n")
            self.assertEqual(copy_range(source.fileno(), target.fileno(), 100_000, 0, 60), 100_000)
            log.write(b"last\n")
        self.assertTrue((self.other / "log").read_bytes() == b"line\n" * 12 + content + b"last\n")

    def test_holes_are_kept(self):
        with open(self.mount / "sparse", "wb") as file:
            file.seek(32 * MIB)
            file.write(b"x" * 5000)
            file.truncate(48 * MIB)
        with open(self.mount / "sparse", "rb") as source, open(self.mount / "sparse-copy", "wb") as target:
            self.assertEqual(copy_range(source.fileno(), target.fileno(), 48 * MIB, 0, 0), 48 * MIB)
        subprocess.run(["cmp", self.mount / "sparse", self.mount / "sparse-copy"], check=True)
        cluster.wait_until(lambda: (self.mount / "sparse-copy").stat().st_blocks * 512 < MIB, 10, "it is sparse")

    def test_within_one_file_and_not_over_itself(self):
        path, content = self.make("one", 100_000)
        with open(path, "rb+", buffering=0) as file:
            self.assertEqual(copy_range(file.fileno(), file.fileno(), 50_000, 0, 100_000), 50_000)
            with self.assertRaises(OSError) as raised:
                os.copy_file_range(file.fileno(), file.fileno(), 50_000, 0, 20_000)
            self.assertEqual(raised.exception.errno, errno.EINVAL)
        self.assertTrue((self.other / "one").read_bytes() == content + content[:50_000])

    def test_rights_are_those_of_the_descriptors(self):
        path, content = self.make("rights", 10_000)
        with open(path, "rb") as reader, open(self.mount / "rights-target", "wb") as writer:
            for source, target in ((writer, reader), (reader, reader), (writer, writer)):
                with self.assertRaises(OSError) as raised:
                    os.copy_file_range(source.fileno(), target.fileno(), 100, 0, 200)
                self.assertEqual(raised.exception.errno, errno.EBADF)
        self.assertEqual(path.read_bytes(), content)

    def test_setuid_goes_when_somebody_else_copies_into_the_file(self):
        source, _ = self.make("source", 10_000)
        target, _ = self.make("tool", 10_000)
        os.chmod(source, 0o644)
        os.chmod(target, 0o4777)
        child = os.fork()
        if child == 0:
            copied = 0
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                copied = os.copy_file_range(os.open(source, os.O_RDONLY), os.open(target, os.O_WRONLY), 10_000)
            finally:
                os._exit(copied != 10_000)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(os.stat(self.other / "tool").st_mode & 0o7777, 0o777)

    def test_two_mounts_that_do_anything_agree_with_a_model(self):
        seed = random.randrange(1 << 32)
        dice = random.Random(seed)
        models = {"left": bytearray(), "right": bytearray()}
        for number in range(300):
            mount = dice.choice((self.mount, self.other))
            one, two = dice.choice((("left", "right"), ("right", "left"), ("left", "left")))
            source, target = models[one], models[two]
            flags = os.O_RDWR | os.O_CREAT
            reading, writing = os.open(mount / one, flags), os.open(mount / two, flags)
            offset, to = dice.randrange(MIB), dice.randrange(MIB)
            length = dice.randrange(1, MIB // 4)
            if one == two:  # what a copy within one file has made longer is no source for the rest of it
                length = max(1, min(length, len(source) - offset))
            what = dice.choice(("write", "copy", "copy", "truncate"))
            try:
                if what == "write":
                    data = bytes([dice.randrange(1, 256)]) * length
                    os.pwrite(writing, data, to)
                    target.extend(bytes(max(0, to + length - len(target))))
                    target[to:to + length] = data
                elif what == "truncate":
                    os.ftruncate(writing, to)
                    target.extend(bytes(max(0, to - len(target))))
                    del target[to:]
                elif one != two or abs(to - offset) >= length:
                    data = bytes(source[offset:offset + length])
                    self.assertEqual(copy_range(reading, writing, length, offset, to), len(data))
                    if data:
                        target.extend(bytes(max(0, to + len(data) - len(target))))
                        target[to:to + len(data)] = data
            finally:
                os.close(reading)
                os.close(writing)
            shown = self.other if mount is self.mount else self.mount
            for name, model in models.items():
                if dice.random() < 0.3 and (shown / name).exists():
                    self.assertTrue((shown / name).read_bytes() == model,
                                    f"seed {seed}, step {number}: {what} {one} {offset} {two} {to} {length}")


if __name__ == "__main__":
    cluster.require_mounts()
    unittest.main()
