# SPDX-License-Identifier: Apache-2.0
"""A program at a mount's ring (shared/ring), without the library: it can say what the library never would."""
import fcntl
import mmap
import os
import select
import socket
import struct

VERSION = 1
READ, WRITE = 0, 1
DURABLE = 1
USE_DESCRIPTOR = -(1 << 63)
HELLO, ADD_MEMORY, REMOVE_MEMORY = 1, 2, 3

REQUEST = struct.Struct("=IIQ16s")
ANSWER = struct.Struct("=iI16s128s")
FIND = struct.Struct("=I16s60s32s16s")
ATTACH = struct.Struct("=II16s")
APPEND = struct.Struct("=II16sIIQQQ")
CHANGE_WORD = struct.Struct("=IIIIQQQQ")
VERIFY = struct.Struct("=IIII" + 64 * "QQ" + 64 * "I")
WATCH = struct.Struct("=II16sQQ")
SIGNAL = struct.Struct("=IIQQQ")
CLONE = struct.Struct("=II16s")  # and an offer
SUBMISSION = struct.Struct("=IIIIQQQQ")
COMPLETION = struct.Struct("=Qq")
# Where the words of the header are (cache lines), and where the submissions begin.
SUBMITTED, TAKEN, COMPLETED, REAPED, MOUNT_SLEEPS, PROGRAM_SLEEPS = (64 * i for i in range(6))
SUBMISSIONS = 6 * 64


def _ioc(direction, number, size):
    return direction << 30 | size << 16 | ord("P") << 8 | number


FIND_COMMAND = _ioc(2, 0x52, FIND.size)
ATTACH_COMMAND = _ioc(3, 0x53, ATTACH.size)
APPEND_COMMAND = _ioc(3, 0x54, APPEND.size)
CHANGE_WORD_COMMAND = _ioc(3, 0x55, CHANGE_WORD.size)
VERIFY_COMMAND = _ioc(3, 0x56, VERIFY.size)
WATCH_COMMAND = _ioc(3, 0x57, WATCH.size)
SIGNAL_COMMAND = _ioc(3, 0x58, SIGNAL.size)
OFFER_CLONE_COMMAND = _ioc(3, 0x59, CLONE.size)
CLONE_COMMAND = _ioc(3, 0x5A, CLONE.size)


def find(path, version=VERSION):
    """The mount's token, socket, transport and durability."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        answer = fcntl.ioctl(descriptor, FIND_COMMAND, FIND.pack(version, b"", b"", b"", b""))
    finally:
        os.close(descriptor)
    _, token, *texts = FIND.unpack(answer)
    return token, *[text.split(b"\0")[0].decode() for text in texts]


def fetch_and_add(descriptor, offset, addend):
    """What the word was."""
    answer = fcntl.ioctl(descriptor, CHANGE_WORD_COMMAND, CHANGE_WORD.pack(VERSION, 0, 3, 0, offset, addend, 0, 0))
    return CHANGE_WORD.unpack(answer)[7]


def store(descriptor, offset, value):
    fcntl.ioctl(descriptor, CHANGE_WORD_COMMAND, CHANGE_WORD.pack(VERSION, DURABLE, 1, 0, offset, value, 0, 0))


def watch(descriptor, secret, channel, offset, length):
    fcntl.ioctl(descriptor, WATCH_COMMAND, WATCH.pack(VERSION, channel, secret, offset, length))


def signal(descriptor, offset, length, value):
    fcntl.ioctl(descriptor, SIGNAL_COMMAND, SIGNAL.pack(VERSION, 0, offset, length, value))


def offer_clone(descriptor):
    """The secret for clone()."""
    return CLONE.unpack(fcntl.ioctl(descriptor, OFFER_CLONE_COMMAND, CLONE.pack(VERSION, 0, b"")))[2]


def clone(descriptor, secret):
    fcntl.ioctl(descriptor, CLONE_COMMAND, CLONE.pack(VERSION, 0, secret))


def verify(descriptor, ranges):
    """The CRC32C of each (offset, length)."""
    words = [word for pair in ranges for word in pair]
    argument = bytearray(VERIFY.pack(VERSION, len(ranges), 0, 0, *words, *[0] * (128 - len(words)), *[0] * 64))
    fcntl.ioctl(descriptor, VERIFY_COMMAND, argument)  # in place: it is more than a string may be
    return VERIFY.unpack(argument)[4 + 128:][:len(ranges)]


def sealed_memory(size, seals=fcntl.F_SEAL_SHRINK, flags=0):
    descriptor = os.memfd_create("ring-client", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING | flags)
    os.ftruncate(descriptor, size)
    if seals:
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


class RingClient:
    """`path`: of anything on the mount; or None, and what find() has told somebody else."""

    def __init__(self, path, depth=64, hello=True, found=None):
        self.token, name, self.transport, self.durability = found or find(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(20)
        self.socket.connect("\0" + name)
        self.sent = self.reaped = self.next = 0
        if hello:
            self.depth, self.secret, (rings, self.doorbell, self.bell) = self.ask(HELLO, depth)
            self.rings = mmap.mmap(rings, os.fstat(rings).st_size)
            self.rings_descriptor = rings

    def close(self):
        self.socket.close()

    def ask(self, kind, value=0, descriptors=(), version=VERSION):
        socket.send_fds(self.socket, [REQUEST.pack(version, kind, value, self.token)], list(descriptors))
        data, received, _, _ = socket.recv_fds(self.socket, ANSWER.size, 4)
        if not data:
            raise ConnectionResetError("the mount has closed the socket")
        error, number, secret, text = ANSWER.unpack(data)
        if error:
            raise OSError(error, text.split(b"\0")[0].decode())
        return number, secret, received

    def add_memory(self, size):
        """(number, the memory)"""
        descriptor = sealed_memory(size)
        number, _, _ = self.ask(ADD_MEMORY, descriptors=[descriptor])
        memory = mmap.mmap(descriptor, size)
        os.close(descriptor)
        return number, memory

    def attach(self, descriptor, secret=None, version=VERSION):
        answer = fcntl.ioctl(descriptor, ATTACH_COMMAND, ATTACH.pack(version, 0, secret or self.secret))
        return ATTACH.unpack(answer)[1]

    def append(self, descriptor, memory, offset, length, flags=0, secret=None):
        answer = fcntl.ioctl(descriptor, APPEND_COMMAND,
                             APPEND.pack(VERSION, flags, secret or self.secret, memory, 0, offset, length, 0))
        return APPEND.unpack(answer)[7]

    def word(self, at):
        return struct.unpack_from("=I", self.rings, at)[0]

    def set_word(self, at, value):
        struct.pack_into("=I", self.rings, at, value & 0xffffffff)

    def put(self, opcode, file, memory, offset, length, flags=0, memory_offset=0):
        """Into the ring; publish() shows it. Returns its user_data."""
        self.next += 1
        at = SUBMISSIONS + self.sent % self.depth * SUBMISSION.size
        SUBMISSION.pack_into(self.rings, at, opcode, flags, file, memory, memory_offset, length, offset, self.next)
        self.sent += 1
        return self.next

    def publish(self):
        self.set_word(SUBMITTED, self.sent)
        os.eventfd_write(self.doorbell, 1)

    def reap(self, seconds=20):
        """(user_data, result) of the next completion."""
        while self.word(COMPLETED) == self.reaped & 0xffffffff:
            self.set_word(PROGRAM_SLEEPS, 1)  # whoever rings takes it back
            if self.word(COMPLETED) != self.reaped & 0xffffffff:
                break
            readable, _, _ = select.select([self.bell, self.socket], [], [], seconds)
            if not readable:
                raise TimeoutError("no completion")
            if self.socket in readable:
                raise ConnectionResetError("the mount has closed the socket")
            os.eventfd_read(self.bell)
        at = SUBMISSIONS + self.depth * SUBMISSION.size + self.reaped % self.depth * COMPLETION.size
        self.reaped += 1
        user_data, result = COMPLETION.unpack_from(self.rings, at)
        self.set_word(REAPED, self.reaped)
        return user_data, result

    def do(self, opcode, file, memory, offset, length, **more):
        """One operation, and its result."""
        wanted = self.put(opcode, file, memory, offset, length, **more)
        self.publish()
        user_data, result = self.reap()
        assert user_data == wanted, (user_data, wanted)
        return result
