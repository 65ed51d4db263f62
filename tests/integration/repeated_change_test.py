#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The MDS dies when it has done a change and nobody has its answer yet: the change is done once, and said to be.

usage: repeated_change_test.py BIN_DIRECTORY
"""
import errno
import os
import socket
import struct
import sys
import threading
import unittest

from cluster import Cluster, wait_until
from renameat2 import EXCHANGE, NOREPLACE, renameat2

BIN = sys.argv.pop(1)


CREATE, LINK, REMOVE, RENAME = 6, 11, 28, 29  # RFC 8881, 16.1
SETXATTR, SETXATTR_CREATE = 73, 1  # RFC 8276, 8.4
DIRECTORY, SYMLINK = 2, 5


def operation(*numbers, name=None):
    """How an operation begins on the wire."""
    encoded = struct.pack(f">{len(numbers)}I", *numbers)
    if name is not None:
        encoded += struct.pack(">I", len(name)) + name.encode()
    return encoded


class AnswerEater:
    """A TCP proxy. From the request on that has `trigger` in it, what the server says goes nowhere."""

    def __init__(self, target_port):
        self.target_port = target_port
        self.trigger, self.eating = None, False
        self.refusing, self.connections = False, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept_loop, daemon=True).start()

    def accept_loop(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                if self.refusing:
                    raise OSError("refused")
                server = socket.create_connection(("127.0.0.1", self.target_port))
            except OSError:
                client.close()
                continue
            self.connections += [client, server]
            for source, sink, from_server in ((client, server, False), (server, client, True)):
                threading.Thread(target=self.pump, args=(source, sink, from_server), daemon=True).start()

    def pump(self, source, sink, from_server):
        try:
            while data := source.recv(1 << 20):
                if not from_server and self.trigger and self.trigger in data:
                    self.trigger, self.eating = None, True
                if not (from_server and self.eating):
                    sink.sendall(data)
        except OSError:
            pass
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        source.close()

    def cut(self):
        """Until `refusing` is false again, nobody gets through."""
        self.refusing, self.eating = True, False
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.connections = []

    def close(self):
        self.listener.close()


class RepeatedChange(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(BIN, pool_size="256M", lease_seconds=10, insecure=True).start_all()
        self.proxy = AnswerEater(self.cluster.nfs_port)
        self.mount = self.cluster.mount(port=self.proxy.port, proto="tcp")
        self.other = self.cluster.mount(name="other", options="actimeo=0")

    def tearDown(self):
        self.cluster.close()
        self.proxy.close()

    def restart(self):
        self.cluster.kill("mds")
        self.proxy.eating = False
        self.cluster.start_mds()

    def expire(self):
        """The MDS forgets the client, and what was done in its session."""
        self.proxy.cut()
        wait_until(lambda: "lease-expired" in self.cluster.log("mds"), 60, "the lease is over")
        self.proxy.refusing = False

    def cut_off(self, change, operation, is_done, end=None):
        """Calls `change`; the MDS does it, and dies before it has said so. What the caller is told."""
        outcome = []

        def call():
            try:
                change()
                outcome.append("done")
            except OSError as e:
                outcome.append(e)
        self.proxy.trigger = operation
        thread = threading.Thread(target=call)
        thread.start()
        wait_until(is_done, 20, "the MDS has done it")
        self.assertEqual(outcome, [])
        (end or self.restart)()
        thread.join(timeout=60)
        self.assertFalse(thread.is_alive())
        return outcome[0]

    def test_each_change_is_done_once_and_answered(self):
        there, seen = self.mount.path, self.other.path
        (there / "file").write_bytes(b"x")
        changes = {
            "mkdir": (lambda: os.mkdir(there / "directory"), operation(CREATE, DIRECTORY),
                      lambda: (seen / "directory").exists()),
            "link": (lambda: os.link(there / "file", there / "second"), operation(LINK, name="second"),
                     lambda: (seen / "second").exists()),
            "symlink": (lambda: os.symlink("file", there / "symbolic"), operation(CREATE, SYMLINK, name="file"),
                        lambda: (seen / "symbolic").is_symlink()),
            "rename": (lambda: os.rename(there / "second", there / "third"), operation(RENAME, name="second"),
                       lambda: (seen / "third").exists()),
            "noreplace": (lambda: renameat2(there / "third", there / "fourth", NOREPLACE),
                          operation(RENAME, name="third"), lambda: (seen / "fourth").exists()),
            "exchange": (lambda: renameat2(there / "fourth", there / "directory", EXCHANGE),
                         operation(RENAME, name="fourth"), lambda: (seen / "fourth").is_dir()),
            "exchange back": (lambda: renameat2(there / "fourth", there / "directory", EXCHANGE),
                              operation(RENAME, name="fourth"), lambda: (seen / "fourth").is_file()),
            "rename back": (lambda: os.rename(there / "fourth", there / "third"), operation(RENAME, name="fourth"),
                            lambda: (seen / "third").exists()),
            "unlink": (lambda: os.unlink(there / "third"), operation(REMOVE, name="third"),
                       lambda: not (seen / "third").exists()),
            "rmdir": (lambda: os.rmdir(there / "directory"), operation(REMOVE, name="directory"),
                      lambda: not (seen / "directory").exists()),
        }
        for name, step in changes.items():
            with self.subTest(name):
                self.assertEqual(self.cut_off(*step), "done")
        self.assertEqual(sorted(os.listdir(there)), ["file", "symbolic"])
        self.assertEqual(os.stat(there / "file").st_nlink, 1)
        for mount in (self.mount, self.other):
            mount.unmount()

    def test_an_exchange_is_not_taken_back_in_another_session(self):
        there, seen = self.mount.path, self.other.path
        (there / "file").write_bytes(b"x")
        (there / "directory").mkdir()
        self.assertEqual(self.cut_off(lambda: renameat2(there / "file", there / "directory", EXCHANGE),
                                      operation(RENAME, name="file"), lambda: (seen / "file").is_dir(), self.expire),
                         "done")
        self.assertTrue((seen / "file").is_dir())
        self.assertTrue((there / "file").is_dir())
        self.assertEqual((there / "directory").read_bytes(), b"x")

    def test_a_rename_that_does_not_replace_is_known_again_in_another_session(self):
        there, seen = self.mount.path, self.other.path
        (there / "file").write_bytes(b"x")
        self.assertEqual(self.cut_off(lambda: renameat2(there / "file", there / "new", NOREPLACE),
                                      operation(RENAME, name="file"), lambda: (seen / "new").exists(), self.expire),
                         "done")
        self.assertEqual(os.listdir(seen), ["new"])

    def test_a_new_attribute_is_that_of_whoever_made_it(self):
        there, seen = self.mount.path / "file", self.other.path / "file"
        there.write_bytes(b"x")
        made = lambda: os.listxattr(seen) == ["user.mine"]

        def create():
            os.setxattr(there, "user.mine", b"first", os.XATTR_CREATE)
        trigger = operation(SETXATTR, SETXATTR_CREATE, name="mine")
        self.assertEqual(self.cut_off(create, trigger, made, self.expire), "done")
        self.assertEqual(os.getxattr(seen, "user.mine"), b"first")
        os.removexattr(seen, "user.mine")

        def expire_while_another_makes_it():
            self.proxy.cut()
            wait_until(lambda: self.cluster.log("mds").count("lease-expired") > 1, 60, "the lease is over")
            os.setxattr(seen, "user.mine", b"another")
            self.proxy.refusing = False
        refused = self.cut_off(create, trigger, made, expire_while_another_makes_it)
        self.assertEqual(refused.errno, errno.EEXIST)
        self.assertEqual(os.getxattr(seen, "user.mine"), b"another")


if __name__ == "__main__":
    unittest.main(verbosity=2)
