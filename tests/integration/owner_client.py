# SPDX-License-Identifier: Apache-2.0
"""An owner of a partition as docs/protocol.md has it, and nothing of ours in it: TLS is that of openssl(1)."""
import hashlib
import os
import socket
import struct
import subprocess
import threading
import time

PROGRAM, ANY = 0x20524D43, 2**64 - 1
OK, EXISTS, NOT_FOUND, NO_SPACE, QUOTA, CONFLICT, REVOKED, INVALID, LIMIT, IO, TRY_LATER, UNKNOWN, READ_ONLY = range(13)
BEGIN, AGAIN, RECLAIM = range(3)


class Refused(Exception):
    """The connection is at its end: the key is not taken, or the brick is gone."""


class OwnerClient:
    def __init__(self, port, partition, key_file):
        key = bytes.fromhex(key_file.read_text().strip().split(":")[1])
        secret = hashlib.sha256(b"pnfsrdma partition secret 1:" + key).hexdigest()
        self.xid, self.attachment, self.epoch = 1, 0, 0
        self.brick = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.probe()
        # The client of openssl(1) knows nothing of the probe: between it and the brick bytes are only carried.
        with socket.create_server(("127.0.0.1", 0)) as door:
            self.tls = subprocess.Popen(
                ["openssl", "s_client", "-connect", f"127.0.0.1:{door.getsockname()[1]}", "-tls1_3", "-psk_identity", partition,
                 "-psk", secret, "-alpn", "sunrpc", "-quiet", "-ciphersuites", "TLS_AES_128_GCM_SHA256"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
            self.local, _ = door.accept()
        self.carriers = [threading.Thread(target=self.carry, args=ends) for ends in ((self.local, self.brick), (self.brick, self.local))]
        for carrier in self.carriers:
            carrier.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.tls.kill()
        self.tls.wait()
        self.tls.stdin.close()
        self.tls.stdout.close()
        for end in (self.brick, self.local):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for carrier in self.carriers:
            carrier.join()
        self.brick.close()
        self.local.close()

    def probe(self):
        """RFC 9289, 4.1: a null call with AUTH_TLS."""
        call = struct.pack(">10I", 1, 0, 2, PROGRAM, 1, 0, 7, 0, 0, 0)
        try:
            self.brick.sendall(struct.pack(">I", 0x80000000 | len(call)) + call)
            answer = self.brick.recv(4096)
        except OSError as error:
            raise Refused from error
        if b"STARTTLS" not in answer:
            raise Refused

    @staticmethod
    def carry(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def read(self, count):
        data = b""
        while len(data) < count:
            more = os.read(self.tls.stdout.fileno(), count - len(data))
            if not more:
                raise Refused
            data += more
        return data

    def call(self, procedure, arguments=b"", program=PROGRAM, version=1):
        """The results; an int: why the call was not accepted."""
        self.xid += 1
        body = struct.pack(">6I", self.xid, 0, 2, program, version, procedure) + bytes(16) + arguments
        try:
            self.tls.stdin.write(struct.pack(">I", 0x80000000 | len(body)) + body)
        except OSError as error:
            raise Refused from error
        length = struct.unpack(">I", self.read(4))[0] & 0x7FFFFFFF
        reply = self.read(length)
        xid, kind, status, _, _, accepted = struct.unpack(">6I", reply[:24])
        assert (xid, kind, status) == (self.xid, 1, 0), (xid, kind, status)
        return accepted or reply[24:]

    def until_done(self, procedure, arguments):
        while struct.unpack(">I", (results := self.call(procedure, arguments))[:4])[0] == TRY_LATER:
            time.sleep(0.02)
        return results

    def status(self, procedure, *numbers):
        arguments = struct.pack(f">{len(numbers) + 1}Q", self.attachment, *numbers)
        return struct.unpack(">I", self.until_done(procedure, arguments)[:4])[0]

    def attach(self, again=0):
        results = self.until_done(1, struct.pack(">Q", again))
        status, attachment = struct.unpack(">IQ", results[:12])
        if status == OK:
            self.attachment, self.epoch = attachment, struct.unpack(">Q", results[28:36])[0]
        return status

    def alloc(self, count, tag, address=ANY):
        return struct.unpack(">IQ", self.until_done(3, struct.pack(">4Q", self.attachment, address, count, tag)))

    def free(self, address, count):
        return self.status(4, address, count)

    def unmap(self, address, count):
        return self.status(6, address, count)

    def release(self, mapping):
        return self.status(7, mapping)

    def map(self, mapping, address, count, writable=True, shared=False, how=BEGIN, epoch=0):
        arguments = struct.pack(">4Q3IQ", self.attachment, mapping, address, count, writable, shared, how, epoch)
        return struct.unpack(">I", self.until_done(5, arguments)[:4])[0]

    def list(self):
        """{address: blocks}; None: it is not attached."""
        results = self.call(9, struct.pack(">2QI", self.attachment, 0, 4096))
        status, count = struct.unpack(">2I", results[:8])
        return dict(struct.unpack(">2Q", results[8 + 16 * i:24 + 16 * i]) for i in range(count)) if status == OK else None

    def write(self, mapping, offset, data, durable=True):
        arguments = struct.pack(">3Q2I", self.attachment, mapping, offset, durable, len(data)) + data + bytes(-len(data) % 4)
        return struct.unpack(">I", self.call(12, arguments)[:4])[0]

    def pread(self, mapping, offset, count):
        results = self.call(11, struct.pack(">3QI", self.attachment, mapping, offset, count))
        status, length = struct.unpack(">2I", results[:8])
        return results[8:8 + length] if status == OK else status
