#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libpnfsrdma against the real daemons: what bricks have read back is compared with what was written.

usage: library_verify_test.py BIN_DIRECTORY
"""
import errno
import os
import unittest

from library_case import MIB, Case  # first: see there
import pnfsrdma


class Verification(Case):
    def tearDown(self):
        self.client.close()

    def flip_a_bit_behind(self, marker, distance):
        """On the medium, which is a file here."""
        pool = self.cluster.pool_directory / "pool.img"
        with open(pool, "r+b", buffering=0) as medium:
            at = 0
            while True:
                medium.seek(at)
                piece = medium.read(16 * MIB)
                self.assertTrue(piece, "the marker is there")
                found = piece.find(marker)
                if found >= 0:
                    break
                at += 16 * MIB - len(marker)
            medium.seek(at + found + distance)
            byte = medium.read(1)[0]
            medium.seek(at + found + distance)
            medium.write(bytes([byte ^ 4]))

    def test_a_flipped_bit_is_found(self):
        content = b"a marker that nothing else contains" + os.urandom(3 * MIB)
        with self.client.open("file", os.O_RDWR | os.O_CREAT) as file:
            file.pwrite(content, 0)
            ranges = [(0, 100), (100, 2 * MIB), (2 * MIB + 100, 64), (7, 0)]
            expected = [pnfsrdma.crc32c(content[at:at + length]) for at, length in ranges]
            self.assertEqual(file.flush_and_verify(ranges, expected), (False, expected), "a pool in a file: not the medium")
            self.assertEqual(file.flush_and_verify(ranges), (False, expected))
            self.flip_a_bit_behind(content[:35], 1000)
            text = self.assert_fails(errno.EBADMSG, file.flush_and_verify, ranges, expected)
            self.assertIn(f"{2 * MIB} bytes at 100 ", text)
            found = file.flush_and_verify(ranges)[1]
            self.assertEqual([i for i in range(4) if found[i] != expected[i]], [1])

    def test_many_ranges_and_what_is_wrong(self):
        content = os.urandom(8 * MIB)
        with self.client.open("file", os.O_RDWR | os.O_CREAT) as file:
            file.pwrite(content, 0)
            ranges = [(i * 8000, 100 + i) for i in range(1000)]
            self.assertEqual(file.flush_and_verify(ranges)[1], [pnfsrdma.crc32c(content[at:at + length]) for at, length in ranges])
            self.assertEqual(file.flush_and_verify([(0, 8 * MIB)])[1], [pnfsrdma.crc32c(content)])
            self.assertEqual(file.flush_and_verify([]), (True, []))
            self.assertIn("ends", self.assert_fails(errno.EINVAL, file.flush_and_verify, [(8 * MIB - 1, 2)]))
            self.assertIn("1024", self.assert_fails(errno.EINVAL, file.flush_and_verify, [(0, 1)] * 1025))
            self.assertIn("64 MiB", self.assert_fails(errno.EINVAL, file.flush_and_verify, [(0, 8 * MIB)] * 9))
        with self.client.open("file", os.O_WRONLY) as file:
            self.assert_fails(errno.EBADF, file.flush_and_verify, [(0, 1)])

    def test_crc32c_is_that_of_castagnoli(self):
        self.assertEqual(pnfsrdma.crc32c(b"123456789"), 0xE3069283)


if __name__ == "__main__":
    unittest.main()
