# SPDX-License-Identifier: Apache-2.0
"""What strangers may do to a server's memory and its loop, over plain sockets, and the healthy client beside them.

Each attack is a function (port, address, scale) that opens its connections from `address`, does its worst and returns
the sockets it holds. abuse_test.py runs them small and asserts bounds; tests/bench/abuse.py measures them in full.
"""
import os
import socket
import struct
import threading
import time

NFS, NULL, COMPOUND = 100003, 0, 1
MINOR = 2
OP_GETATTR, OP_PUTROOTFH, OP_EXCHANGE_ID, OP_CREATE_SESSION, OP_SEQUENCE, OP_TEST_STATEID = 9, 24, 42, 43, 53, 55
SLOTS, CACHED = 64, 8192


def opaque(data):
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def auth_sys():
    return struct.pack(">I", 1) + opaque(struct.pack(">I", 0) + opaque(b"abuse") + struct.pack(">III", 0, 0, 0))


def call(xid, procedure, arguments=b"", credential=None):
    credential = struct.pack(">II", 0, 0) if credential is None else credential
    body = struct.pack(">IIIIII", xid, 0, 2, NFS, 4, procedure) + credential + struct.pack(">II", 0, 0) + arguments
    return struct.pack(">I", 0x80000000 | len(body)) + body


def compound(xid, *operations):
    head = opaque(b"") + struct.pack(">II", MINOR, len(operations))
    return call(xid, COMPOUND, head + b"".join(operations), auth_sys())


def connect(port, address, timeout=10):
    return socket.create_connection(("127.0.0.1", port), timeout=timeout, source_address=(address, 0))


class Refused(Exception):
    """The RPC was denied, or an operation failed: its status."""


class Client:
    """One NFSv4.2 client with one session, all by hand: it holds nothing but its socket."""

    def __init__(self, port, address, name, slots=SLOTS):
        self.socket = connect(port, address)
        self.xid = 0
        self.name = name
        owner = os.urandom(8) + opaque(name)
        result = self.run(struct.pack(">I", OP_EXCHANGE_ID) + owner + struct.pack(">III", 0, 0, 0))
        client, sequence = struct.unpack_from(">QI", result, 8)
        channel = struct.pack(">IIIIIII", 0, 1 << 20, 1 << 20, CACHED, 64, slots, 0)
        back = struct.pack(">IIIIIII", 0, 4096, 4096, 0, 2, 1, 0)
        security = struct.pack(">III", 0x40000000, 1, 0)  # callbacks by AUTH_NONE
        result = self.run(struct.pack(">IQII", OP_CREATE_SESSION, client, sequence, 0) + channel + back + security)
        self.session = result[8:24]
        self.slots = struct.unpack_from(">I", result, 8 + 16 + 8 + 20)[0]
        self.sequences = [0] * max(slots, self.slots)
        self.highest = self.slots - 1

    def exchange(self, message):
        self.socket.sendall(message)
        return self.receive()

    def receive(self):
        reply = b""
        while True:
            mark = struct.unpack(">I", self.exactly(4))[0]
            reply += self.exactly(mark & 0x7FFFFFFF)
            if mark & 0x80000000:
                return reply

    def exactly(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionResetError("the server closed the connection")
            data += part
        return data

    def run(self, *operations):
        """The results of a COMPOUND, from the first operation's number on."""
        self.xid += 1
        reply = self.exchange(compound(self.xid, *operations))
        if struct.unpack_from(">I", reply, 8)[0] != 0 or len(reply) < 32:
            raise Refused("denied")
        status, length = struct.unpack_from(">II", reply, 24)
        if status:
            raise Refused(status)
        return reply[24 + 8 + length + (-length % 4) + 4:]

    def in_session(self, slot, *operations, keep=False):
        self.sequences[slot] += 1
        sequence = struct.pack(">I", OP_SEQUENCE) + self.session + struct.pack(
            ">IIII", self.sequences[slot], slot, self.highest, int(keep))
        result = self.run(sequence, *operations)
        # SEQUENCE's sr_target_highest_slotid: a client that is asked for less uses less.
        self.highest = max(slot, min(self.highest, struct.unpack_from(">I", result, 8 + 16 + 12)[0]))
        return result

    def ping(self):
        self.in_session(0, struct.pack(">I", OP_PUTROOTFH), struct.pack(">III", OP_GETATTR, 1, 1 << 4))

    def close(self):
        self.socket.close()


class Healthy(threading.Thread):
    """A client that asks for the root's size again and again and notes how long each answer took.

    at_once: it waits for no processor, as if it had a host of its own.
    """

    def __init__(self, port, address="127.0.0.1", at_once=False):
        super().__init__(daemon=True)
        self.client = Client(port, address, b"healthy")
        self.times = []
        self.failed = None
        self.at_once = at_once
        self.stopping = threading.Event()

    def run(self):
        if self.at_once:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # of this thread
        try:
            while not self.stopping.wait(0.002):
                begun = time.perf_counter()
                self.client.ping()
                self.times.append(time.perf_counter() - begun)
        except OSError as error:
            self.failed = error

    def take(self):
        times, self.times = self.times, []
        return sorted(times)

    def stop(self):
        self.stopping.set()
        self.join(10)
        self.client.close()


def percentile(times, share):
    return times[min(len(times) - 1, int(len(times) * share))] if times else float("nan")


def rss_mib(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1]) / 1024


def pour(sockets, data, seconds):
    """Sends `data` by each socket as far as the server takes it, all at once; forgets those that it closes."""
    left = {one: memoryview(data) for one in sockets}
    for one in sockets:
        one.setblocking(False)
    end = time.monotonic() + seconds
    while left and time.monotonic() < end:
        moved = False
        for one in list(left):
            try:
                left[one] = left[one][one.send(left[one][:262144]):]
                moved = True
                if not left[one]:
                    del left[one]
            except BlockingIOError:
                pass
            except OSError:
                del left[one]
        if not moved:
            time.sleep(0.01)


def open_many(port, address, count):
    sockets = []
    for _ in range(count):
        try:
            sockets.append(connect(port, address))
        except OSError:
            break
    return sockets


def unread_nulls(port, address, scale=1.0, seconds=8):
    """Calls of 44 bytes whose answers nobody takes."""
    sockets = []
    for _ in range(max(1, int(16 * scale))):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.bind((address, 0))
        one.connect(("127.0.0.1", port))
        sockets.append(one)
    pour(sockets, call(1, NULL) * int((23 << 20) / 44), seconds)
    return sockets


def half_records(port, address, scale=1.0, seconds=8):
    """600 kB each of requests whose end never comes."""
    sockets = open_many(port, address, max(1, int(2000 * scale)))
    pour(sockets, struct.pack(">I", 0x80000000 | (1 << 20)) + bytes(600_000), seconds)
    return sockets


def tiny_halves(port, address, scale=1.0, seconds=8):
    """100 bytes each of requests said to be long."""
    sockets = open_many(port, address, max(1, int(2000 * scale)))
    pour(sockets, struct.pack(">I", 0x80000000 | (1 << 20)) + bytes(100), seconds)
    return sockets


def reply_caches(port, address, scale=1.0, seconds=60):
    """Clients that have every slot keep as long an answer as it may."""
    sockets = []
    end = time.monotonic() + seconds
    for number in range(max(1, int(4096 * scale))):
        if time.monotonic() > end:
            break
        try:
            client = Client(port, address, b"cache %d %s" % (number, address.encode()))
            sockets.append(client.socket)
            for slot in range(client.slots):
                if slot <= client.highest:
                    # Four bytes of answer for each stateid, and no file is needed.
                    asked = struct.pack(">II", OP_TEST_STATEID, 1900) + bytes(16 * 1900)
                    client.in_session(slot, asked, keep=True)
        except (Refused, OSError):
            continue
    return sockets


def flood(port, address, scale=1.0, seconds=8):
    """Calls without end on one connection, and every answer is taken."""
    one = connect(port, address)
    one.setblocking(False)
    chunk = memoryview(call(1, NULL) * 4096)
    rest = chunk
    end = time.monotonic() + seconds * min(1.0, scale * 4)
    while time.monotonic() < end:
        try:
            rest = rest[one.send(rest):] or chunk
        except BlockingIOError:
            pass
        try:
            if not one.recv(1 << 20):
                break
        except BlockingIOError:
            pass
    return [one]


def empty_fragments(port, address, scale=1.0, seconds=8):
    """Marks of fragments that have no bytes."""
    sockets = []
    end = time.monotonic() + seconds * min(1.0, scale * 4)
    while time.monotonic() < end:
        one = connect(port, address)
        pour([one], bytes(1 << 20), 1)
        one.close()
    return sockets


ATTACKS = {"unread-nulls": unread_nulls, "half-records": half_records, "tiny-halves": tiny_halves,
           "reply-caches": reply_caches, "flood": flood, "empty-fragments": empty_fragments}
