#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The control of a brick by RPC-with-TLS (RFC 9289): a mount works over it, and nobody without a certificate gets anywhere.

usage: brick_tls_test.py BIN_DIRECTORY
"""
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import unittest

from authority import Authority
from cluster import Cluster, require_mounts, wait_until
from ports import free_port

BIN = sys.argv.pop(1)
SECONDS = 60
PROGRAM, VERSION, IDENTIFY = 0x20524D42, 2, 17
TOO_WEAK, BAD_CREDENTIAL = 5, 1


def record(body):
    return struct.pack(">I", 0x80000000 | len(body)) + body


def call(xid, procedure, flavor=0):
    return record(struct.pack(">10I", xid, 0, 2, PROGRAM, VERSION, procedure, flavor, 0, 0, 0))


def read_record(stream):
    def read(count):
        bytes_read = b""
        while len(bytes_read) < count:
            part = stream.recv(count - len(bytes_read))
            if not part:
                raise EOFError
            bytes_read += part
        return bytes_read
    return read(struct.unpack(">I", read(4))[0] & 0x7FFFFFFF)


class BrickTls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        require_mounts()

    def setUp(self):
        self.port = free_port()
        self.cluster = Cluster(BIN, pool_size="256M", insecure=True, brick_patience_seconds=60)
        self.addCleanup(self.cluster.close)
        self.home = self.cluster.home
        self.authority = Authority(self.home, "ca")
        self.authority.issue("brick-host", "serverAuth")
        self.authority.issue("alpha", "clientAuth")
        self.change("brick", control={"unix": "", "tcp": f"127.0.0.1:{self.port}", "tls": self.authority.files("brick-host")})
        self.change("mds", bricks=[f"tcp:127.0.0.1:{self.port}"], brick_tls=self.authority.files("alpha"))

    def change(self, name, without=(), **members):
        path = self.home / f"{name}.json"
        values = json.loads(path.read_text()) | members
        path.write_text(json.dumps({key: value for key, value in values.items() if key not in without}, indent=1))

    def reload(self, name, event="reloaded"):
        before = self.cluster.log(name).count(f"{event} ")
        self.cluster.signal(name, signal.SIGHUP)
        wait_until(lambda: self.cluster.log(name).count(f"{event} ") > before, SECONDS, f"{name}: {event}")

    def brick(self):
        asked = subprocess.run([f"{BIN}/pnfsrdma", "--json", "--socket", str(self.home / "console.sock"), "brick", "list"],
                               capture_output=True, text=True, check=True, timeout=60)
        bricks = json.loads(asked.stdout)
        return (bricks["bricks"] if isinstance(bricks, dict) else bricks)[0]

    def detail(self):
        return self.brick()["detail"] or ""

    def wait_for_brick(self, state):
        wait_until(lambda: self.brick()["state"] == state, SECONDS, f"the brick is {state}")

    def dial(self):
        stream = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        self.addCleanup(stream.close)
        return stream

    def context(self, certificate=None, alpn="sunrpc"):
        context = ssl.create_default_context(cafile=str(self.home / "ca.pem"))
        if certificate:
            context.load_cert_chain(self.home / f"{certificate}.pem", self.home / f"{certificate}.key")
        context.set_alpn_protocols([alpn])
        return context

    def secured(self, context):
        stream = self.dial()
        stream.sendall(call(7, 0, flavor=7))
        self.assertEqual(read_record(stream), struct.pack(">5I", 7, 1, 0, 0, 8) + b"STARTTLS" + struct.pack(">I", 0))
        return context.wrap_socket(stream, server_hostname="127.0.0.1")

    def test_a_mount_works_over_it_and_nobody_else_gets_in(self):
        cluster = self.cluster.start_all()
        self.assertIn("tls=required", cluster.log("brick"))
        mount = cluster.mount(proto="tcp")
        data = os.urandom(8 << 20)
        (mount / "file").write_bytes(data)
        self.assertEqual((mount / "file").read_bytes(), data)
        self.assertIn("tls=alpha", cluster.log("brick"))
        self.assertIn("tls=true", cluster.log("mds"))

        # Another client that keeps to the RFC.
        stream = self.secured(self.context("alpha"))
        self.assertEqual((stream.version(), stream.selected_alpn_protocol()), ("TLSv1.3", "sunrpc"))
        stream.sendall(call(8, IDENTIFY))
        self.assertEqual(struct.unpack(">6I", read_record(stream)[:24]), (8, 1, 0, 0, 0, 0))
        stream.sendall(call(9, 0, flavor=7))
        self.assertEqual(struct.unpack(">5I", read_record(stream)), (9, 1, 1, 1, BAD_CREDENTIAL), "AUTH_TLS within TLS")

        # Nobody without a certificate.
        plain = self.dial()
        for xid, procedure in enumerate((0, IDENTIFY)):
            plain.sendall(call(xid, procedure))
            self.assertEqual(struct.unpack(">5I", read_record(plain)), (xid, 1, 1, 1, TOO_WEAK))
        stranger = Authority(self.home, "stranger")
        stranger.issue("eve", "clientAuth")
        for context in (self.context(), self.context("eve"), self.context("brick-host")):
            with self.assertRaises((ssl.SSLError, EOFError, ConnectionError)):
                stream = self.secured(context)
                stream.sendall(call(8, IDENTIFY))
                read_record(stream)
        self.assertIn("control-refused", cluster.log("brick"))
        self.assertEqual((mount / "file").read_bytes(), data)
        mount.unmount()

        # What looks at both from outside uses it, too.
        cluster.stop("mds")
        checked = cluster.run("mdsd", "--config", str(self.home / "mds.json"), "--check", check=False)
        self.assertEqual((checked.returncode, "does not answer" in checked.stdout), (0, False), checked.stdout)

    def test_certificates_change_under_load(self):
        cluster = self.cluster.start_all()
        mount = cluster.mount(proto="tcp")
        stop, written, failed = threading.Event(), [], []

        def work():
            number = 0
            while not stop.is_set():
                path = mount / f"file-{number % 20}"
                try:
                    with open(path, "wb") as file:
                        file.write(os.urandom(3 << 20))
                        os.fsync(file.fileno())
                    os.unlink(path)
                    written.append(number)
                except OSError as error:
                    failed.append(error)
                number += 1
        worker = threading.Thread(target=work)
        worker.start()
        try:
            wait_until(lambda: len(written) > 3, SECONDS, "work is done")
            for _ in range(3):
                self.authority.issue("brick-host", "serverAuth")
                self.authority.issue("alpha", "clientAuth")
                self.reload("brick")
                self.reload("mds")
                before = len(written)
                wait_until(lambda: len(written) > before + 2, SECONDS, "work goes on")
            self.assertEqual(cluster.log("brick").count("control-closed"), 0, "connections go on")
            # Another authority: first both trust both, then the certificates change, then the old one is no more.
            other = Authority(self.home, "ca2")
            (self.home / "both.pem").write_text((self.home / "ca.pem").read_text() + (self.home / "ca2.pem").read_text())
            for issue, trusted in ((False, "both"), (True, "both"), (False, "ca2")):
                if issue:
                    other.issue("brick-host", "serverAuth")
                    other.issue("alpha", "clientAuth")
                control = json.loads((self.home / "brick.json").read_text())["control"]
                self.change("brick", control=control | {"tls": other.files("brick-host", trusted)})
                self.change("mds", brick_tls=other.files("alpha", trusted))
                self.reload("brick")
                self.reload("mds")
                before = len(written)
                wait_until(lambda: len(written) > before + 2, SECONDS, "work goes on")
        finally:
            stop.set()
            worker.join()
        self.assertEqual(failed, [])
        self.assertGreaterEqual(cluster.log("brick").count("control-connected"), 2, "that of the old authority was ended")
        mount.unmount()

    def test_a_file_that_cannot_be_used_changes_nothing(self):
        cluster = self.cluster.start_all()
        (self.home / "alpha.key").write_text("nonsense")
        (self.home / "brick-host.pem").unlink()
        for name in ("mds", "brick"):
            self.reload(name, "reload-refused")
        self.assertIn("brick_tls: key: ", cluster.log("mds"))
        self.assertIn("control.tls: certificate: ", cluster.log("brick"))
        wait_until(lambda: self.brick()["state"] == "ready", SECONDS, "the brick is ready")
        cluster.stop("mds")
        refused = cluster.run("mdsd", "--config", str(self.home / "mds.json"), check=False)
        self.assertIn("is not the key of the certificate", refused.stderr)
        cluster.stop("brick")
        refused = cluster.run("brickd", "--config", str(self.home / "brick.json"), check=False)
        self.assertIn("has no certificate that can be read", refused.stderr)

    def test_what_was_reached_by_tls_is_not_reached_without_it(self):
        cluster = self.cluster
        self.change("mds", without=["brick_tls"])
        cluster.start_all()
        wait_until(lambda: "AUTH_ERROR 5" in self.detail(), SECONDS, "it is told that this brick wants TLS")
        self.change("mds", brick_tls=self.authority.files("alpha"))
        self.reload("mds")
        self.wait_for_brick("ready")

        self.change("mds", without=["brick_tls"])
        self.reload("mds")
        wait_until(lambda: "brick_tls" in self.detail(), SECONDS, "it says what is missing")
        cluster.stop("mds")
        cluster.start_mds()
        wait_until(lambda: "brick_tls" in self.detail(), SECONDS, "a restart does not make it forget")
        # Without TLS at both ends, because the administrator says so.
        cluster.stop("brick")
        control = json.loads((self.home / "brick.json").read_text())["control"]
        self.change("brick", control={key: value for key, value in control.items() if key != "tls"})
        cluster.start_brick()
        time.sleep(1)
        self.assertNotEqual(self.brick()["state"], "ready", "nobody takes its place without a certificate")
        self.assertNotIn("control-connected", cluster.log("brick").split("unauthenticated")[-1])
        self.change("mds", brick_tls={"plain": [f"tcp:127.0.0.1:{self.port}"]})
        self.reload("mds")
        self.wait_for_brick("ready")

    def test_who_is_taken_out_of_the_list_is_shut_out(self):
        cluster = self.cluster.start_all()
        mount = cluster.mount(proto="tcp")
        (mount / "file").write_bytes(b"1" * 5_000_000)
        control = json.loads((self.home / "brick.json").read_text())["control"]
        self.change("brick", control=control | {"tls": control["tls"] | {"peers": ["beta"]}})
        self.reload("brick")
        wait_until(lambda: self.brick()["state"] != "ready", SECONDS, "the MDS is shut out")
        wait_until(lambda: "does not take our certificate" in self.detail(), SECONDS, "and knows why")
        self.change("brick", control=control | {"tls": control["tls"] | {"peers": ["beta", "alpha"]}})
        self.reload("brick")
        self.wait_for_brick("ready")
        (mount / "another").write_bytes(b"2" * 5_000_000)
        self.assertEqual((mount / "file").read_bytes(), b"1" * 5_000_000)
        mount.unmount()


if __name__ == "__main__":
    unittest.main(verbosity=2)
