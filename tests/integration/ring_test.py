#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A mount's ring: data by it, rights by the kernel, and programs that lie.

usage: ring_test.py BIN_DIRECTORY
"""
import errno
import mmap
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import threading
import time
import unittest

import ring_client
from cluster import Cluster, wait_until
from ring_client import DURABLE, READ, USE_DESCRIPTOR, WRITE, RingClient

BIN = sys.argv.pop(1)
MIB = 1 << 20
# Of a few hundred programs in this one; mounts inherit it.
resource.setrlimit(resource.RLIMIT_NOFILE, [resource.getrlimit(resource.RLIMIT_NOFILE)[1]] * 2)


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stop(pid):
    """Returns when it stands: a signal takes its time."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: all(task.joinpath("stat").read_text().rsplit(") ", 1)[1][0] == "T" for task in pathlib.Path(f"/proc/{pid}/task").iterdir()),
               20, "it stands")


class Ring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="512M").start_all()
        cls.mount = cls.cluster.mount("allow_other,flush_after=0,ring_memory=64", name="a")
        cls.other = cls.cluster.mount("actimeo=0", name="b")

    @classmethod
    def tearDownClass(cls):
        cls.mount.unmount()
        cls.other.unmount()
        cls.cluster.close()

    def setUp(self):
        self.client = self.connect()
        self.memory, self.bytes = self.client.add_memory(MIB)

    def connect(self, **options):
        client = RingClient(self.mount.path, **options)
        self.addCleanup(client.close)
        return client

    def make(self, size=MIB, name=None):
        path = self.mount / (name or self.id().rsplit(".", 1)[-1])
        content = os.urandom(size)
        path.write_bytes(content)
        return path, content

    def open(self, path, flags=os.O_RDWR | os.O_DIRECT):
        descriptor = os.open(path, flags)
        self.addCleanup(os.close, descriptor)
        return descriptor

    def attached(self, path, flags=os.O_RDWR | os.O_DIRECT):
        """(descriptor, number), with the layout there."""
        descriptor = self.open(path, flags)
        number = self.client.attach(descriptor)
        if flags & os.O_ACCMODE != os.O_RDONLY:
            os.pwrite(descriptor, os.pread(descriptor, 4096, 0), 0)
        else:
            os.pread(descriptor, 4096, 0)
        return descriptor, number

    def assert_fails(self, number, call, *arguments, **more):
        with self.assertRaises(OSError) as caught:
            call(*arguments, **more)
        self.assertEqual(errno.errorcode[caught.exception.errno], errno.errorcode[number], caught.exception)

    # --- data

    def test_reads_and_overwrites_go_by_rdma(self):
        path, content = self.make()
        _, file = self.attached(path)
        before = self.mount.wait_until_quiet()  # CLOSEs of others
        self.assertEqual(self.client.do(READ, file, self.memory, 0, MIB), MIB)
        self.assertEqual(self.bytes[:], content)
        self.bytes[:8192] = new = os.urandom(8192)
        self.assertEqual(self.client.do(WRITE, file, self.memory, 65536, 8192), 8192)
        after = self.mount.statistics()
        self.assertEqual(after["rdma_read_bytes"] - before["rdma_read_bytes"], MIB)
        self.assertEqual(after["rdma_write_bytes"] - before["rdma_write_bytes"], 8192)
        self.assertEqual(after["mds_calls"], before["mds_calls"])
        self.assertEqual(after["ring_operations"] - before["ring_operations"], 2)
        self.assertEqual(path.read_bytes()[65536:65536 + 8192], new)

    def test_many_at_once(self):
        path, content = self.make()
        _, file = self.attached(path)
        offsets = {}
        for i in range(64):
            offsets[self.client.put(READ, file, self.memory, i * 4096, 4096, memory_offset=i * 4096)] = i
        self.client.publish()
        for _ in range(64):
            user_data, result = self.client.reap()
            self.assertEqual(result, 4096)
            del offsets[user_data]
        self.assertEqual(offsets, {})
        self.assertEqual(self.bytes[:64 * 4096], content[:64 * 4096])

    def test_more_than_a_connection_takes(self):
        path, content = self.make()
        client = self.client = self.connect(depth=2048)
        self.memory, self.bytes = client.add_memory(MIB)
        _, file = self.attached(path)
        before = self.mount.statistics()
        for i in range(2048):
            client.put(READ, file, self.memory, i * 512, 512, memory_offset=i * 512)
        client.publish()
        for _ in range(2048):
            self.assertEqual(client.reap()[1], 512)
        self.assertEqual(self.bytes[:], content)
        self.assertEqual(self.mount.statistics()["ring_handed_back"], before["ring_handed_back"])

    def test_a_durable_write_is_flushed_with_it(self):
        path, _ = self.make()
        descriptor, file = self.attached(path)
        os.fsync(descriptor)
        before = self.mount.wait_until_quiet()  # CLOSEs of others
        self.assertEqual(self.client.do(WRITE, file, self.memory, 4096, 4096, flags=DURABLE), 4096)
        after = self.mount.statistics()
        flushes = [after[name] - before[name] for name in ("flushes_native", "flushes_commit_message")]
        self.assertEqual(sum(flushes), 1)
        self.assertEqual(after["mds_calls"], before["mds_calls"])

    def test_what_the_kernel_has_to_know_of_is_handed_back(self):
        path, _ = self.make(MIB - 100)
        descriptor, file = self.attached(path)
        for opcode in (READ, WRITE):
            self.assertEqual(self.client.do(opcode, file, self.memory, MIB - 4096, 4096), USE_DESCRIPTOR)
        self.assertEqual(self.client.do(WRITE, file, self.memory, 10 * MIB, 1), USE_DESCRIPTOR)
        self.assertEqual(os.fstat(descriptor).st_size, MIB - 100)
        appending = self.open(path, os.O_WRONLY | os.O_APPEND)
        self.assertEqual(self.client.do(WRITE, self.client.attach(appending), self.memory, 0, 1), -errno.EBADF)

    def test_appends_tell_where(self):
        path, content = self.make(10_000)
        descriptor = self.open(path, os.O_WRONLY)
        self.bytes[:6] = b"hello\n"
        self.assertEqual(self.client.append(descriptor, self.memory, 0, 6), 10_000)
        self.assertEqual(self.client.append(descriptor, self.memory, 0, 6, flags=DURABLE), 10_006)
        self.assertEqual(os.fstat(descriptor).st_size, 10_012)
        self.assertEqual(path.read_bytes(), content + b"hello\n" * 2)
        self.assertEqual((self.other / path.name).read_bytes(), content + b"hello\n" * 2)

    def test_what_is_verified_in_one_call_is_bounded(self):
        path, _ = self.make(0)
        os.truncate(path, 1 << 40)  # holes
        descriptor = self.open(path, os.O_RDONLY)
        quarter = 16 * MIB
        self.assertEqual(len(set(ring_client.verify(descriptor, [(i << 30, quarter) for i in range(4)]))), 1)
        for ranges in ([(0, 64 * MIB + 1)], [(0, 1 << 40)], [(i << 30, quarter) for i in range(4)] + [(0, 1)],
                       [(0, (1 << 64) - 1), (0, 2)], [(0, 1 << 63)] * 2):
            self.assert_fails(errno.EINVAL, ring_client.verify, descriptor, ranges)

    # --- one file, with the kernel

    def test_a_buffered_reader_sees_what_was_written_before(self):
        path, _ = self.make()
        _, file = self.attached(path)
        reader = self.open(path, os.O_RDONLY)
        mapped = mmap.mmap(reader, MIB, prot=mmap.PROT_READ)
        for turn in range(200):
            at = random.randrange(255) * 4096
            os.pread(reader, 65536, at & ~65535)  # its pages are the kernel's
            self.bytes[:4096] = new = bytes([turn]) * 4096
            self.assertEqual(self.client.do(WRITE, file, self.memory, at, 4096), 4096)
            self.assertEqual(os.pread(reader, 4096, at), new, f"turn {turn}")
            self.assertEqual(mapped[at:at + 4096], new, f"turn {turn}, mapped")

    def test_several_at_once_are_all_seen(self):
        path, _ = self.make()
        _, file = self.attached(path)
        reader = self.open(path, os.O_RDONLY)
        for turn in range(100):
            os.pread(reader, 32 * 4096, 0)
            at = {}
            for i in range(16):
                self.bytes[i * 4096:(i + 1) * 4096] = bytes([(turn + i) % 256]) * 4096
                at[self.client.put(WRITE, file, self.memory, 2 * i * 4096, 4096, memory_offset=i * 4096)] = i
            self.client.publish()
            for _ in range(16):
                user_data, result = self.client.reap()
                self.assertEqual(result, 4096)
                i = at[user_data]
                self.assertEqual(os.pread(reader, 4096, 2 * i * 4096), bytes([(turn + i) % 256]) * 4096, f"turn {turn}")

    def test_what_the_descriptor_has_written_is_read(self):
        path, _ = self.make()
        descriptor, file = self.attached(path)
        buffered = self.open(path, os.O_RDWR)
        for turn in range(50):
            os.pwrite(descriptor if turn % 2 else buffered, new := os.urandom(4096), 8192)
            self.assertEqual(self.client.do(READ, file, self.memory, 8192, 4096), 4096)
            self.assertEqual(self.bytes[:4096], new)

    def test_the_time_of_a_write_is_seen(self):
        path, _ = self.make()
        descriptor, file = self.attached(path)
        os.utime(path, (1, 1))
        self.assertEqual(os.fstat(descriptor).st_mtime, 1)
        self.assertEqual(self.client.do(WRITE, file, self.memory, 0, 4096), 4096)
        self.assertGreater(os.fstat(descriptor).st_mtime, 1)

    def test_another_hosts_truncation_is_no_way_around_the_end(self):
        path, _ = self.make()
        _, file = self.attached(path)
        os.truncate(self.other / path.name, 8192)
        self.bytes[:4096] = b"x" * 4096
        wait_until(lambda: self.client.do(WRITE, file, self.memory, 16384, 4096) == USE_DESCRIPTOR or
                   os.stat(path).st_size == 8192, 20, "the cut is known")
        self.assertEqual(os.stat(self.other / path.name).st_size, 8192)

    # --- rights

    def test_a_descriptor_for_reading_writes_nothing(self):
        path, content = self.make()
        _, file = self.attached(path, os.O_RDONLY | os.O_DIRECT)
        self.assertEqual(self.client.do(READ, file, self.memory, 0, 4096), 4096)
        self.assertEqual(self.client.do(WRITE, file, self.memory, 0, 4096), -errno.EBADF)
        self.assert_fails(errno.EBADF, self.client.append, self.open(path, os.O_RDONLY), self.memory, 0, 1)
        self.assertEqual(path.read_bytes(), content)

    def test_a_descriptor_for_writing_reads_nothing(self):
        path, _ = self.make()
        file = self.client.attach(self.open(path, os.O_WRONLY | os.O_DIRECT))
        self.assertEqual(self.client.do(READ, file, self.memory, 0, 4096), -errno.EBADF)

    def test_a_file_ends_with_its_descriptor(self):
        path, content = self.make()
        descriptor = os.open(path, os.O_RDWR | os.O_DIRECT)
        file = self.client.attach(descriptor)
        copy = os.dup(descriptor)
        os.close(descriptor)
        os.pwrite(copy, content[:4096], 0)
        self.assertEqual(self.client.do(READ, file, self.memory, 0, 4096), 4096)
        os.close(copy)
        # The release follows the close.
        wait_until(lambda: self.client.do(WRITE, file, self.memory, 0, 4096) == -errno.EBADF, 20, "it has ended")
        self.assertEqual(path.read_bytes(), content)

    def test_a_program_names_its_own_files_and_memories_only(self):
        path, content = self.make()
        _, file = self.attached(path)
        stranger = self.connect()
        memory, _ = stranger.add_memory(4096)
        for wanted in range(16):
            self.assertEqual(stranger.do(READ, wanted, memory, 0, 4096), -errno.EBADF)
        own = stranger.attach(self.open(path))
        for other in (memory + 1, self.memory + 100, 0, 0xffffffff):
            self.assertEqual(stranger.do(READ, own, other, 0, 4096), -errno.EFAULT)
        self.assert_fails(errno.EPERM, stranger.attach, self.open(path), secret=bytes(16))
        self.assert_fails(errno.EPERM, stranger.append, self.open(path), memory, 0, 1, secret=bytes(16))
        self.assertEqual(path.read_bytes(), content)
        self.assertGreater(file, 0)

    def test_another_user_opens_what_the_kernel_lets_him(self):
        path, content = self.make()
        path.chmod(0o640)
        free, _ = self.make(name="free")
        free.chmod(0o666)
        program = f"""
import os, sys, errno
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
from ring_client import *
os.setgroups([]), os.setgid(65534), os.setuid(65534)
client = RingClient({str(self.mount.path)!r})
memory, data = client.add_memory(4096)
try:
    os.open({str(path)!r}, os.O_RDONLY)
    sys.exit("opened")
except PermissionError:
    pass
descriptor = os.open({str(free)!r}, os.O_RDWR | os.O_DIRECT)
file = client.attach(descriptor)
os.pwrite(descriptor, os.pread(descriptor, 4096, 0), 0)
data[:] = b"n" * 4096
assert client.do(WRITE, file, memory, 0, 4096) == 4096
for wanted in range(file + 8):
    if wanted != file: assert client.do(READ, wanted, memory, 0, 4096) == -errno.EBADF
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(free.read_bytes()[:4096], b"n" * 4096)
        self.assertEqual(path.read_bytes(), content)

    def test_a_write_takes_the_set_user_bit_away(self):
        path, _ = self.make()
        path.chmod(0o6777)
        program = f"""
import os, sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
from ring_client import *
os.setgroups([]), os.setgid(65534), os.setuid(65534)
client = RingClient({str(self.mount.path)!r})
memory, data = client.add_memory(4096)
file = client.attach(descriptor := os.open({str(path)!r}, os.O_RDWR | os.O_DIRECT))
os.pread(descriptor, 4096, 0)
print(client.do(WRITE, file, memory, 0, 4096))
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.stdout, done.stderr), (f"{USE_DESCRIPTOR}\n", ""))

    # --- lies

    def test_operations_that_are_none(self):
        path, content = self.make()
        _, file = self.attached(path)
        for wanted in ((7, file, 0, 4096, {}), (READ, file, 0, 0, {}), (READ, file, 0, 1 << 40, {}), (READ, file, 1 << 63, 4096, {}),
                       (READ, file, (1 << 64) - 1, 4096, {}), (WRITE, file, 0, 4096, {"flags": 2})):
            opcode, number, offset, length, more = wanted
            self.assertEqual(self.client.do(opcode, number, self.memory, offset, length, **more), -errno.EINVAL, wanted)
        for at, length in ((MIB, 1), (MIB - 4095, 4096), ((1 << 64) - 4096, 4096), ((1 << 64) - 1, MIB)):
            self.assertEqual(self.client.do(READ, file, self.memory, 0, length, memory_offset=at), -errno.EFAULT, at)
        self.assertEqual(path.read_bytes(), content)

    def test_rings_full_of_noise(self):
        path, content = self.make()
        for seed in range(20):
            client = self.connect()
            noise = random.Random(seed)
            memory, _ = client.add_memory(65536)
            file = client.attach(self.open(path, os.O_RDONLY | os.O_DIRECT))
            for _ in range(300):
                if noise.random() < 0.5:
                    client.put(noise.choice([READ, WRITE, 2]), file, memory, noise.choice([0, 4096, 1 << 62]), noise.choice([0, 1, 4096, 65536]),
                               memory_offset=noise.choice([0, 1, 65535, 1 << 63]))
                else:
                    at = noise.randrange(0, len(client.rings) - 8) if noise.random() < 0.5 else 64 * noise.randrange(6)
                    client.rings[at:at + 4] = noise.randbytes(4)
                client.publish()
            if seed % 2:
                client.close()
        # The others are none the worse for it.
        _, own = self.attached(path, os.O_RDONLY | os.O_DIRECT)
        self.assertEqual(self.client.do(READ, own, self.memory, 0, MIB), MIB)
        self.assertEqual(self.bytes[:], content)

    def test_memory_that_could_be_taken_away_is_not_taken(self):
        for descriptor in (ring_client.sealed_memory(4096, seals=0), self.open("/dev/zero", os.O_RDWR), self.open("/etc/hostname", os.O_RDONLY),
                           self.open(self.make()[0])):
            self.assert_fails(errno.EINVAL, self.client.ask, ring_client.ADD_MEMORY, descriptors=[descriptor])
        self.assert_fails(errno.EINVAL, self.client.ask, ring_client.ADD_MEMORY)
        self.assert_fails(errno.EINVAL, self.client.ask, ring_client.ADD_MEMORY, descriptors=[ring_client.sealed_memory(4096)] * 2)
        self.assert_fails(errno.EINVAL, self.client.ask, ring_client.ADD_MEMORY, descriptors=[ring_client.sealed_memory(0)])
        self.assert_fails(errno.EINVAL, self.client.ask, ring_client.ADD_MEMORY, descriptors=[ring_client.sealed_memory(100)])
        with self.assertRaises(OSError):
            os.ftruncate(self.client.rings_descriptor, 4096)

    def test_memory_of_huge_pages_is_not_taken(self):
        """A hole in it may find no page to be filled with: a SIGBUS for whoever touches it, whatever is sealed."""
        try:
            huge = ring_client.sealed_memory(2 * MIB, flags=os.MFD_HUGETLB)
        except OSError as error:
            self.skipTest(f"this kernel has no huge pages: {error}")
        self.addCleanup(os.close, huge)
        with self.assertRaises(OSError) as caught:
            self.client.ask(ring_client.ADD_MEMORY, descriptors=[huge])
        self.assertEqual(caught.exception.errno, errno.EINVAL, caught.exception)
        self.assertIn("huge pages", str(caught.exception))

    def test_a_hole_in_memory_is_zeros(self):
        path, content = self.make()
        _, file = self.attached(path)
        shared = ring_client.sealed_memory(MIB)
        self.addCleanup(os.close, shared)
        memory, _, _ = self.client.ask(ring_client.ADD_MEMORY, descriptors=[shared])
        for turn in range(20):
            self.assertEqual(self.client.do(READ, file, memory, 0, MIB), MIB)
            self.assertEqual(os.pread(shared, MIB, 0), content)
            subprocess.run(["fallocate", "-p", "-o", "0", "-l", str(MIB), f"/proc/{os.getpid()}/fd/{shared}"], check=True)
        self.assertEqual(self.client.do(WRITE, file, memory, 0, MIB), MIB)
        self.assertEqual(path.read_bytes(), bytes(MIB))

    def test_memory_is_bounded_and_comes_back(self):
        self.assert_fails(errno.ENOMEM, self.client.add_memory, 64 * MIB)
        numbers = [self.client.add_memory(20 * MIB)[0] for _ in range(3)]
        self.assert_fails(errno.ENOMEM, self.client.add_memory, 20 * MIB)
        self.client.ask(ring_client.REMOVE_MEMORY, numbers[0])
        self.assert_fails(errno.EINVAL, self.client.ask, ring_client.REMOVE_MEMORY, numbers[0])
        self.client.add_memory(20 * MIB)
        self.client.close()
        wait_until(lambda: self.mount.statistics()["ring_memory_bytes"] == 0, 20, "what a program shared goes with it")
        self.client = self.connect()
        self.client.add_memory(60 * MIB)

    def test_requests_that_are_none(self):
        self.assert_fails(errno.EPROTONOSUPPORT, self.client.ask, ring_client.HELLO, 64, version=2)
        self.assert_fails(errno.EINVAL, self.client.ask, 99)
        self.assert_fails(errno.EALREADY, self.client.ask, ring_client.HELLO, 64)
        for depth in (0, 4097, 1 << 63):
            self.assert_fails(errno.EINVAL, self.connect(hello=False).ask, ring_client.HELLO, depth)
        self.assert_fails(errno.EINVAL, self.client.attach, self.open(self.make()[0]), version=2)
        uninvited = self.connect(hello=False)
        uninvited.token = bytes(16)
        self.assert_fails(errno.EACCES, uninvited.ask, ring_client.HELLO, 64)
        for message in (b"", b"x", b"x" * 31, b"x" * 33, b"x" * 4000):
            client = self.connect(hello=False)
            client.socket.send(message)
            if message:
                self.assertEqual(client.socket.recv(1), b"", message)
        self.assert_fails(errno.ENOTTY, ring_client.fcntl.ioctl, self.open(self.make()[0]), 0x5401)

    def test_programs_are_bounded(self):
        clients = [self.connect() for _ in range(200)]
        with self.assertRaises(OSError):
            for _ in range(100):
                self.connect()
        program = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
from ring_client import *
os.setgroups([]), os.setgid(65534), os.setuid(65534)
clients = []
try:
    while True: clients.append(RingClient({str(self.mount.path)!r}))
except OSError:
    print(len(clients))
"""
        for client in clients[:150]:
            client.close()
        wait_until(lambda: self.mount.statistics()["ring_programs"] < 150, 20, "they have gone")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.stdout, done.stderr), ("64\n", ""))

    def test_who_connects_and_says_nothing_keeps_nobody_out(self):
        """Of four users, as many as there are places for programs."""
        name = ring_client.find(self.mount.path)[1]
        program = """
import os, socket, sys
os.setgroups([]), os.setgid(int(sys.argv[1])), os.setuid(int(sys.argv[1]))
idle = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(64)]
for each in idle: each.connect("\\0" + sys.argv[2])
print("connected", flush=True)
sys.stdin.read(1)
"""
        idlers = [subprocess.Popen([sys.executable, "-c", program, str(user), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                  for user in range(61001, 61005)]
        try:
            for idler in idlers:
                self.assertEqual(idler.stdout.readline(), b"connected\n")
            for _ in range(20):
                self.connect().add_memory(4096)
        finally:
            for idler in idlers:
                idler.communicate(b"x")

    # --- ends

    def test_a_program_that_is_killed_leaves_nothing(self):
        path, _ = self.make()
        program = f"""
import os, sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
from ring_client import *
client = RingClient({str(self.mount.path)!r})
memory, data = client.add_memory(1 << 20)
file = client.attach(descriptor := os.open({str(path)!r}, os.O_RDWR | os.O_DIRECT))
os.pwrite(descriptor, os.pread(descriptor, 4096, 0), 0)
print("ready", flush=True)
while True:
    for i in range(32): client.put(i % 2, file, memory, i * 4096, 4096, memory_offset=i * 4096)
    client.publish()
    for i in range(32): client.reap()
"""
        before = self.mount.statistics()["ring_programs"]
        for _ in range(5):
            with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as running:
                running.stdout.readline()
                time.sleep(0.2)
                running.kill()
        wait_until(lambda: self.mount.statistics()["ring_programs"] == before, 20, "they have gone")
        _, file = self.attached(path)
        self.assertEqual(self.client.do(READ, file, self.memory, 0, 4096), 4096)

    def test_closes_beside_what_is_under_way(self):
        path, _ = self.make()
        stop = time.monotonic() + 3
        failures = []

        def run(number):
            client = self.connect()
            memory, _ = client.add_memory(65536)
            try:
                while time.monotonic() < stop:
                    descriptor = os.open(path, os.O_RDWR | os.O_DIRECT)
                    file = client.attach(descriptor)
                    for i in range(16):
                        client.put(i % 2, file, memory, i * 4096, 4096, memory_offset=i * 4096)
                    client.publish()
                    os.close(descriptor)
                    for _ in range(16):
                        result = client.reap()[1]
                        if result not in (4096, -errno.EBADF, USE_DESCRIPTOR):
                            failures.append(result)
            except Exception as error:
                failures.append(error)
        threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class Without(unittest.TestCase):
    def test_no_ring_is_found(self):
        with Cluster(BIN, pool_size="64M") as cluster:
            cluster.start_all()
            for options in ("ring_memory=0", "writeback"):
                mount = cluster.mount(options)
                with self.assertRaises(OSError) as caught:
                    ring_client.find(mount.path)
                self.assertEqual(caught.exception.errno, errno.ENOTSUP)
                mount.unmount()


class Scarce(unittest.TestCase):
    def test_without_descriptors_programs_wait_and_nothing_spins(self):
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        with Cluster(BIN, pool_size="64M") as cluster:
            cluster.start_all()
            mount = cluster.mount()
            resource.prlimit(mount.process.pid, resource.RLIMIT_NOFILE, (128, limits[1]))
            clients = []
            with self.assertRaises(OSError):
                while True:
                    clients.append(RingClient(mount.path, hello=False))
                    self.addCleanup(clients[-1].close)
                    clients[-1].socket.settimeout(2)
                    clients[-1].ask(ring_client.HELLO, 64)
            before = cpu_seconds(mount.process.pid)
            time.sleep(2)
            self.assertLess(cpu_seconds(mount.process.pid) - before, 1)
            for client in clients:
                client.close()
            again = RingClient(mount.path)
            self.addCleanup(again.close)
            again.add_memory(4096)
            mount.unmount()


class Ends(unittest.TestCase):
    def test_an_unmount_tells_the_programs(self):
        with Cluster(BIN, pool_size="64M") as cluster:
            cluster.start_all()
            mount = cluster.mount()
            client = RingClient(mount.path)
            self.addCleanup(client.close)
            client.add_memory(MIB)
            mount.unmount()
            self.assertEqual(client.socket.recv(1), b"")

    def test_a_killed_program_has_something_under_way(self):
        with Cluster(BIN, pool_size="64M") as cluster:
            cluster.start_all()
            mount = cluster.mount()
            path = mount / "file"
            path.write_bytes(content := os.urandom(MIB))
            program = f"""
import os, sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
from ring_client import *
client = RingClient({str(mount.path)!r})
memory, data = client.add_memory(1 << 20)
file = client.attach(descriptor := os.open({str(path)!r}, os.O_RDWR | os.O_DIRECT))
os.pwrite(descriptor, os.pread(descriptor, 4096, 0), 0)
data[:] = b"n" * len(data)
print("ready", flush=True)
sys.stdin.read(1)
for i in range(32): client.put(i % 2, file, memory, i * 4096, 4096, memory_offset=i * 4096)
client.publish()
print("sent", flush=True)
sys.stdin.read(1)
"""
            for _ in range(3):
                with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
                    running.stdout.readline()
                    stop(cluster.processes["brick"].pid)
                    running.stdin.write(b"x")
                    running.stdin.flush()
                    running.stdout.readline()
                    time.sleep(0.3)
                    running.kill()
                time.sleep(0.3)
                os.kill(cluster.processes["brick"].pid, signal.SIGCONT)
                wait_until(lambda: mount.statistics()["ring_programs"] == 0, 20, "it has gone")
                seen = path.read_bytes()
                for at in range(0, MIB, 4096):
                    self.assertIn(seen[at:at + 4096], (content[at:at + 4096], b"n" * 4096))
            mount.unmount()

    def test_a_silent_brick_holds_up_nobody_else(self):
        with Cluster(BIN, pool_size="64M") as cluster:
            cluster.start_all()
            mount = cluster.mount("timeo=20,retrans=1")
            path = mount / "file"
            path.write_bytes(os.urandom(MIB))
            descriptor = os.open(path, os.O_RDWR | os.O_DIRECT)
            client = RingClient(mount.path)
            self.addCleanup(client.close)
            memory, _ = client.add_memory(MIB)
            file = client.attach(descriptor)
            os.pwrite(descriptor, os.pread(descriptor, 4096, 0), 0)
            self.assertEqual(client.do(WRITE, file, memory, 0, 4096), 4096)
            stop(cluster.processes["brick"].pid)
            begun = client.put(WRITE, file, memory, 0, 4096)
            client.publish()
            time.sleep(0.3)
            self.assertEqual(client.do(READ, 99, memory, 0, 4096), -errno.EBADF)
            os.kill(cluster.processes["brick"].pid, signal.SIGCONT)
            user_data, result = client.reap(60)
            self.assertEqual(user_data, begun)
            self.assertIn(result, (4096, USE_DESCRIPTOR))
            os.close(descriptor)
            mount.unmount()


if __name__ == "__main__":
    unittest.main(verbosity=2)
