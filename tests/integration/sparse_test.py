#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holes and memory without data: fallocate(2), SEEK_DATA and SEEK_HOLE, and the programs that use them.

usage: sparse_test.py BIN_DIRECTORY
"""
import ctypes
import errno
import mmap
import os
import random
import subprocess
import sys
import unittest

import cluster
from two_mounts import TwoMounts

BIN = sys.argv.pop(1)
KEEP_SIZE, PUNCH_HOLE, COLLAPSE, ZERO, INSERT = 1, 2, 8, 16, 32
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def fallocate(descriptor, mode, offset, length):
    if LIBC.fallocate(descriptor, mode, offset, length) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def run(*command):
    subprocess.run([str(part) for part in command], check=True)


class Sparse(TwoMounts):
    bin = BIN
    daemons = {"pool_size": "512M"}

    def test_a_punched_hole_reads_as_zeros_everywhere_and_takes_no_memory(self):
        path, content = self.make("punched", 4 << 20)
        (self.other / "punched").read_bytes()  # has a layout there, and pages
        blocks = path.stat().st_blocks
        run("fallocate", "-p", "-o", 5000, "-l", 2 << 20, path)
        hole = slice(5000, 5000 + (2 << 20))
        expected = bytearray(content)
        expected[hole] = bytes(2 << 20)
        self.assertTrue(path.read_bytes() == expected)
        self.assertTrue((self.other / "punched").read_bytes() == expected)
        self.assertLess(path.stat().st_blocks, blocks - (2 << 20) // 512 + 64)
        self.assertEqual(path.stat().st_size, 4 << 20)

    def test_what_the_writer_has_not_committed_does_not_come_back(self):
        with open(self.mount / "kept", "wb+", buffering=0) as file:
            for i in range(64):
                file.write(bytes([i + 1]) * 16384)
            fallocate(file.fileno(), PUNCH_HOLE | KEEP_SIZE, 100_000, 500_000)
            os.fsync(file.fileno())
            self.assertEqual(os.pread(file.fileno(), 500_000, 100_000), bytes(500_000))
            self.assertEqual(os.pread(file.fileno(), 1, 99_999), bytes([7]))
            os.pwrite(file.fileno(), b"again", 200_000)
        self.assertEqual((self.other / "kept").read_bytes()[199_999:200_006], b"\0again\0")

    def test_allocated_memory_reads_as_zeros_and_cannot_run_out(self):
        path = self.mount / "allocated"
        run("fallocate", "-l", 64 << 20, path)
        self.assertEqual(path.stat().st_size, 64 << 20)
        self.assertGreaterEqual(path.stat().st_blocks * 512, 64 << 20)
        self.assertEqual((self.other / "allocated").read_bytes().count(0), 64 << 20)
        with self.assertRaises(OSError) as raised, open(self.mount / "too-much", "wb") as file:
            fallocate(file.fileno(), 0, 0, 1 << 40)
        self.assertEqual(raised.exception.errno, errno.ENOSPC)
        self.assertEqual((self.mount / "too-much").stat().st_blocks, 0)
        path.unlink()

    def test_a_range_that_keeps_the_size_does_not_bring_back_what_another_host_has_cut(self):
        path, content = self.make("cut", 1 << 20)
        with open(path, "rb+", buffering=0) as file:
            os.fstat(file.fileno())
            os.truncate(self.other / "cut", 10_000)
            fallocate(file.fileno(), ZERO | KEEP_SIZE, 4096, 500_000)
            self.assertEqual((self.other / "cut").stat().st_size, 10_000)
            self.assertEqual(os.fstat(file.fileno()).st_size, 10_000)
            os.truncate(self.other / "cut", 5_000)
            with self.assertRaises(OSError) as raised:
                fallocate(file.fileno(), KEEP_SIZE, 0, 10_000)
            self.assertEqual(raised.exception.errno, errno.EOPNOTSUPP)
            os.truncate(self.other / "cut", 100_000)
            fallocate(file.fileno(), KEEP_SIZE, 0, 100_000)
            self.assertEqual((self.other / "cut").stat().st_size, 100_000)
        self.assertTrue(path.read_bytes() == content[:4096] + bytes(95_904))

    def test_zeroing_keeps_the_memory(self):
        path, content = self.make("zeroed", 1 << 20)
        run("fallocate", "-z", "-o", 4096, "-l", 500_000, path)
        self.assertTrue(path.read_bytes() == content[:4096] + bytes(500_000) + content[504_096:])
        self.assertGreaterEqual(path.stat().st_blocks * 512, 1 << 20)
        run("fallocate", "-z", "-n", "-o", (1 << 20) - 100, "-l", 4096, path)
        self.assertEqual(path.stat().st_size, 1 << 20)
        run("fallocate", "-z", "-o", (1 << 20) - 100, "-l", 4096, path)
        self.assertEqual(path.stat().st_size, (1 << 20) + 3996)

    def test_without_growing_only_what_the_file_has(self):
        path = self.mount / "inside"
        path.write_bytes(b"x")
        os.truncate(path, 1 << 20)
        run("fallocate", "-n", "-l", 1 << 20, path)
        self.assertGreaterEqual(path.stat().st_blocks * 512, 1 << 20)
        with open(path, "rb+") as file:
            for mode in (KEEP_SIZE, COLLAPSE, INSERT):
                with self.assertRaises(OSError) as raised:
                    fallocate(file.fileno(), mode, 1 << 20, 4096 if mode == KEEP_SIZE else 0x1000)
                self.assertIn(raised.exception.errno, (errno.EOPNOTSUPP, errno.EINVAL))

    def test_data_and_holes_are_found(self):
        with open(self.mount / "holes", "wb+", buffering=0) as file:
            descriptor = file.fileno()
            os.pwrite(descriptor, b"x" * 65536, 1 << 20)
            os.ftruncate(descriptor, 4 << 20)
            self.assertEqual(os.lseek(descriptor, 5000, os.SEEK_DATA), 5000, "somebody may write through a mapping")
            self.assertEqual(os.lseek(descriptor, 5000, os.SEEK_HOLE), 4 << 20)
        with self.reader("holes") as file:
            descriptor = file.fileno()
            self.assertEqual(os.lseek(descriptor, 0, os.SEEK_DATA), 1 << 20)
            self.assertEqual(os.lseek(descriptor, 0, os.SEEK_HOLE), 0)
            self.assertEqual(os.lseek(descriptor, 1 << 20, os.SEEK_HOLE), (1 << 20) + 65536)
            with self.assertRaises(OSError) as raised:
                os.lseek(descriptor, 2 << 20, os.SEEK_DATA)
            self.assertEqual(raised.exception.errno, errno.ENXIO)
            self.assertEqual(os.lseek(descriptor, 2 << 20, os.SEEK_HOLE), 2 << 20)
            with self.assertRaises(OSError):
                os.lseek(descriptor, 4 << 20, os.SEEK_HOLE)

    def reader(self, name):
        """Opens it for reading when its last writer has left: the kernel does not wait for that in close(2)."""
        def seen():
            with open(self.mount / name, "rb") as file:
                return os.lseek(file.fileno(), 0, os.SEEK_HOLE) < os.fstat(file.fileno()).st_size
        cluster.wait_until(seen, 10, "nobody has it open for writing")
        return open(self.mount / name, "rb", buffering=0)

    def test_what_a_mapping_has_written_is_never_in_a_hole(self):
        with open(self.mount / "mapped", "wb+", buffering=0) as file:
            os.ftruncate(file.fileno(), 1 << 20)
            # Opened before: an open has the pages written back.
            with mmap.mmap(file.fileno(), 1 << 20) as memory, open(self.mount / "mapped", "rb") as reader:
                memory[500_000:500_003] = b"new"
                self.assertLessEqual(os.lseek(reader.fileno(), 0, os.SEEK_DATA), 500_000)
                run("cp", "--sparse=auto", self.mount / "mapped", self.mount / "mapped-copy")
                self.assertEqual((self.mount / "mapped-copy").read_bytes()[500_000:500_003], b"new")
        with self.reader("mapped") as file:
            self.assertLessEqual(os.lseek(file.fileno(), 0, os.SEEK_DATA), 500_000)

    def test_programs_keep_files_sparse(self):
        path = self.mount / "image"
        with open(path, "wb") as file:
            file.seek(32 << 20)
            file.write(os.urandom(100_000))
            file.truncate(64 << 20)
        self.reader("image").close()
        run("cp", "--sparse=auto", path, self.mount / "copy")
        run("tar", "--sparse", "-cf", self.cluster.home / "image.tar", "-C", self.mount.path, "image")
        self.assertLess((self.cluster.home / "image.tar").stat().st_size, 1 << 20)
        self.assertLess((self.mount / "copy").stat().st_blocks * 512, 2 << 20)
        run("cmp", path, self.mount / "copy")
        zeros = self.mount / "zeros"
        zeros.write_bytes(bytes(8 << 20))
        run("fallocate", "-d", zeros)
        # What was ahead of it goes with its last close.
        cluster.wait_until(lambda: zeros.stat().st_blocks == 0, 10, "the file has no memory")
        self.assertEqual(zeros.read_bytes(), bytes(8 << 20))

    def test_a_read_only_descriptor_changes_nothing(self):
        path, content = self.make("read-only", 8192)
        with open(path, "rb") as file, self.assertRaises(OSError) as raised:
            fallocate(file.fileno(), PUNCH_HOLE | KEEP_SIZE, 0, 4096)
        self.assertEqual(raised.exception.errno, errno.EBADF)
        self.assertEqual(path.read_bytes(), content)

    def test_two_mounts_that_do_anything_agree_with_a_model(self):
        seed = random.randrange(1 << 32)
        dice = random.Random(seed)
        model = bytearray()
        for number in range(400):
            here = dice.choice((self.mount, self.other)) / "model"
            what = dice.choice(("write", "write", "truncate", "punch", "zero", "allocate", "seek"))
            flags = os.O_RDONLY if what == "seek" else os.O_RDWR | dice.choice((0, 0, os.O_DIRECT))
            descriptor = os.open(here, flags | os.O_CREAT)
            try:
                step = self.step(dice, what, descriptor, model)
            finally:
                os.close(descriptor)
            shown = (self.other if here.is_relative_to(self.mount.path) else self.mount) / "model"
            if dice.random() < 0.5:
                self.assertTrue(shown.read_bytes() == model, f"seed {seed}, step {number}: {step}")

    def step(self, dice, what, descriptor, model):
        unit = 4096
        size = len(model)
        offset = dice.randrange(0, 256) * unit
        length = dice.randrange(1, 64) * unit
        end = offset + length
        if what == "write":
            import mmap
            source = mmap.mmap(-1, length)
            source.write(bytes([dice.randrange(1, 256)]) * length)
            self.assertEqual(os.pwrite(descriptor, source, offset), length)
            model.extend(bytes(max(0, end - size)))
            model[offset:end] = source[:]
        elif what == "truncate":
            end = offset + dice.randrange(unit)
            os.ftruncate(descriptor, end)
            model.extend(bytes(max(0, end - size)))
            del model[end:]
        elif what == "punch":
            offset, end = offset + dice.randrange(unit), end + dice.randrange(unit)
            fallocate(descriptor, PUNCH_HOLE | KEEP_SIZE, offset, end - offset)
            inside = max(0, min(end, size) - offset)
            model[offset:offset + inside] = bytes(inside)
        elif what == "zero":
            fallocate(descriptor, ZERO, offset, length)
            model.extend(bytes(max(0, end - size)))
            model[offset:end] = bytes(length)
        elif what == "allocate":
            fallocate(descriptor, 0, offset, length)
            model.extend(bytes(max(0, end - size)))
        elif what == "seek" and offset < size:
            hole = os.lseek(descriptor, offset, os.SEEK_HOLE)
            self.assertTrue(offset <= hole <= size)
            try:
                data = os.lseek(descriptor, offset, os.SEEK_DATA)
            except OSError as error:
                self.assertEqual(error.errno, errno.ENXIO)
                data = size
            self.assertEqual(bytes(model[offset:data]).count(0), data - offset, "data in a hole")
        return what, offset, length


if __name__ == "__main__":
    cluster.require_mounts()
    unittest.main()
