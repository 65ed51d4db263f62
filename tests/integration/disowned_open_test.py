#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server that does not know the stateid of an open any more, though the session lives and no flag says so.

Ours does not lose opens that way, so what stands between it and the mount spoils their stateids until a file is opened.

usage: disowned_open_test.py BIN_DIRECTORY
"""
import fcntl
import os
import re
import socket
import struct
import sys
import threading
import unittest

from cluster import Cluster

BIN = sys.argv.pop(1)
MIB = 1 << 20
# READ, WRITE and SETATTR under the newest stateid of an open (seqid 0), and the first LOCK of an owner.
STATEID = re.compile(rb"\0\0\0[\x19\x26\x22]\0{4}(.{12})|\0\0\0\x0c.{24}\0\0\0\x01.{4}\0{4}(.{12})", re.DOTALL)
PUTFH = b"\0\0\0\x16\0\0\0\x20"  # of a handle of 32 bytes
HEAD = 400  # operations stand before the data of a WRITE
OWNER = b"pnfsrdma-fuse"  # in each OPEN


def connect_as_root(port):
    """From a port below 1024, as the server wants it."""
    for own in range(1023, 600, -1):
        try:
            return socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.1", own))
        except OSError:  # taken
            continue
    raise OSError("no port below 1024 is free")


class Disowner:
    """A TCP proxy. After disown() it spoils what it finds of open stateids, until an OPEN passes."""

    def __init__(self, target_port):
        self.target_port, self.disowning, self.spoiled, self.opens = target_port, False, 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept_loop, daemon=True).start()

    def disown(self):
        self.spoiled, self.opens, self.disowning = 0, 0, True

    def accept_loop(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = connect_as_root(self.target_port)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self.replies, args=(server, client), daemon=True).start()

    def replies(self, source, sink):
        with source, sink:
            try:
                while data := source.recv(1 << 20):
                    sink.sendall(data)
                sink.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def requests(self, source, sink):
        with source.makefile("rb") as stream:
            try:
                while mark := stream.read(4):
                    record = bytearray(stream.read(struct.unpack(">I", mark)[0] & 0x7FFFFFFF))
                    if self.disowning:
                        self.look_at(record)
                    sink.sendall(mark + record)
                sink.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def look_at(self, record):
        if OWNER in record:
            self.opens += 1
            self.disowning = False
            return
        # Behind the PUTFH: the number in SEQUENCE may be that of an operation, also where nothing follows it (to renew the lease).
        begin = record.find(PUTFH)
        for found in STATEID.finditer(record, begin, HEAD) if begin >= 0 else ():
            other = found.group(1) or found.group(2)
            if found.start() % 4 == 0 and set(other) not in ({0}, {0xFF}):
                record[found.end() - 1] ^= 0xFF
                self.spoiled += 1

    def close(self):
        self.listener.close()


class DisownedOpen(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="1G", lease_seconds=5).start_all()
        cls.proxy = Disowner(cls.cluster.nfs_port)
        cls.here = cls.cluster.mount(name="here", port=cls.proxy.port)
        cls.there = cls.cluster.mount(name="there")

    @classmethod
    def tearDownClass(cls):
        cls.here.unmount()
        cls.there.unmount()
        cls.proxy.close()
        cls.cluster.close()

    def setUp(self):
        name = self.id().rsplit(".", 1)[-1]
        self.path, self.seen = self.here / name, self.there / name
        self.path.write_bytes(b"before")
        self.file = os.open(self.path, os.O_RDWR)
        self.proxy.disown()

    def tearDown(self):
        os.close(self.file)
        self.assertEqual(self.proxy.opens > 0, self.proxy.spoiled > 0)
        self.assertGreater(self.proxy.spoiled, 0)

    def test_a_write_is_written(self):
        os.pwrite(self.file, b"behind", 0)
        os.fsync(self.file)
        self.assertEqual(self.seen.read_bytes(), b"behind")

    def test_a_read_is_read(self):
        os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_DONTNEED)
        self.assertEqual(os.pread(self.file, 100, 0), b"before")

    def test_a_truncation_cuts(self):
        os.ftruncate(self.file, 3)
        self.assertEqual(self.seen.read_bytes(), b"bef")

    def test_a_lock_is_given(self):
        # Who can read, too, asks for a write delegation first, by an OPEN.
        os.close(self.file)
        self.proxy.disowning = False
        self.file = os.open(self.path, os.O_WRONLY)
        self.proxy.disown()
        fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with open(self.seen, "r+b") as other, self.assertRaises(BlockingIOError):
            fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_what_grew_without_the_server_beside_it_is_not_lost(self):
        data = os.urandom(3 * MIB)
        path, seen = self.here / "grown", self.there / "grown"
        self.proxy.disowning = False
        path.write_bytes(b"x" * MIB)
        grown = os.open(path, os.O_RDWR)
        os.pwrite(grown, data, 0)
        self.proxy.disown()
        os.pwrite(self.file, b"behind", 0)
        os.fsync(grown)
        self.assertEqual(seen.read_bytes(), data)
        os.close(grown)


if __name__ == "__main__":
    unittest.main()
