#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of a program's own, registered with libpnfsrdma; and maps at an address.

usage: library_memory_test.py BIN_DIRECTORY
"""
import ctypes
import errno
import fcntl
import mmap
import os
import signal
import struct
import unittest

from library_case import BIN, Case, MIB, pnfsrdma  # first: see there
import cluster

PAGE = 4096
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
F_ADD_SEALS, F_SEAL_SHRINK, F_SEAL_WRITE = 1033, 2, 8
MFD_HUGETLB, MAP_HUGETLB, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 4, 0x40000, 1, 2


def memfd(size=MIB, seals=F_SEAL_SHRINK, flags=0):
    descriptor = os.memfd_create("memory", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING | flags)
    os.ftruncate(descriptor, size)
    if seals:
        fcntl.fcntl(descriptor, F_ADD_SEALS, seals)
    return descriptor


class Memory(Case):
    """With a connection to the server, and through a mount."""

    def setUp(self):
        super().setUp()
        self.mount = self.cluster.mount()
        self.mounted = pnfsrdma.connect(str(self.mount.path))
        with self.client.open("file", os.O_RDWR | os.O_CREAT) as file:
            file.pwrite(os.urandom(MIB), 0)
            file.fsync()

    def tearDown(self):
        self.mounted.close()
        self.client.close()
        self.mount.unmount()

    def register_raw(self, client, address, size):
        result = pnfsrdma._library.pnfsrdma_register(client._pointer, address, size)
        return result, pnfsrdma._library.pnfsrdma_last_error().decode()

    def move(self, client, memory):
        """Through a queue and by functions: what is read is what the kernel reads, what is written is what it reads then."""
        path = self.mount.path / "file"
        with client.open("file", os.O_RDWR) as file, client.queue(4) as queue:
            queue.submit([file.operation(pnfsrdma.READ, memory[PAGE:3 * PAGE], 5 * PAGE)])
            self.assertEqual(queue.reap()[0].result, 2 * PAGE)
            self.assertEqual(bytes(memory[PAGE:3 * PAGE]), path.read_bytes()[5 * PAGE:7 * PAGE])
            memory[:9] = b"by queue!"
            queue.submit([file.operation(pnfsrdma.WRITE, memory[:9], 100, flags=pnfsrdma.DURABLE)])
            self.assertEqual(queue.reap()[0].result, 9)
            memory[10:19] = b"by a call"
            file.pwrite(memory[10:19], 200)
            self.assertEqual(file.preadinto(memory[30:39], 200), 9)
            file.append(memory[:9])
            file.fdatasync()
        content = path.read_bytes()
        self.assertEqual((content[100:109], content[200:209], content[-9:], bytes(memory[30:39])),
                         (b"by queue!", b"by a call", b"by queue!", b"by a call"))

    def test_memory_of_the_program(self):
        memory = mmap.mmap(-1, MIB)
        view = memoryview(memory)
        self.client.register(memory)
        self.move(self.client, view)
        self.client.unregister(memory)
        self.move(self.client, view)  # copied
        self.assertIn("memfd", self.assert_fails(errno.ENOTSUP, self.mounted.register, memory))
        view.release()

    def test_a_memfd_is_for_both(self):
        descriptor = memfd()
        for client in (self.client, self.mounted):
            memory = client.register_fd(descriptor, MIB)
            self.move(client, memory)
            client.unregister(memory)
        one, other = self.client.register_fd(descriptor, MIB), self.mounted.register_fd(descriptor, MIB)
        os.close(descriptor)
        with self.client.open("file") as file:
            self.assertEqual(file.preadinto(one, 0), MIB)
        self.assertTrue(one == other, "they are the same pages")
        self.client.unregister(one)
        self.move(self.mounted, other)
        self.mounted.unregister(other)

    def test_huge_pages(self):
        size = 2 * MIB
        try:
            descriptor = memfd(size, flags=MFD_HUGETLB)
            probe = mmap.mmap(descriptor, size)
        except OSError as error:
            self.skipTest(f"no huge pages: {error}")
        probe[0] = 1
        memory = self.client.register_fd(descriptor, size)
        self.move(self.client, memory)
        self.client.unregister(memory)
        self.client.register(probe)
        self.move(self.client, memoryview(probe))
        self.client.unregister(probe)
        self.assertIn("huge pages", self.assert_fails(errno.EINVAL, self.mounted.register_fd, descriptor, size))
        os.close(descriptor)

    def test_what_cannot_be_registered_is_refused_with_its_reason(self):
        memory = mmap.mmap(-1, 4 * PAGE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for at, size, number, text in ((address + 8, PAGE, errno.EINVAL, "whole pages"), (address, 100, errno.EINVAL, "whole pages"),
                                       (address, 0, errno.EINVAL, "whole pages"), (0, PAGE, errno.EFAULT, "null"),
                                       (PAGE, PAGE, errno.EFAULT, "not all of it is mapped")):
            result, said = self.register_raw(self.client, at, size)
            self.assertEqual((result, text in said), (-number, True), said)
        constant = LIBC.mmap(None, PAGE, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        result, said = self.register_raw(self.client, constant, PAGE)
        self.assertEqual((result, "may not be written" in said), (-errno.EFAULT, True), said)
        LIBC.munmap(constant, PAGE)
        empty = os.memfd_create("cut", 0)
        os.ftruncate(empty, 2 * PAGE)
        beyond = mmap.mmap(empty, 2 * PAGE)
        os.ftruncate(empty, PAGE)
        result, said = self.register_raw(self.client, ctypes.addressof(ctypes.c_char.from_buffer(beyond)), 2 * PAGE)
        self.assertEqual((result, "ends before it" in said), (-errno.EFAULT, True), said)
        self.assertEqual(self.register_raw(self.client, address, 2 * PAGE)[0], 0)
        for at, size in ((address, PAGE), (address + PAGE, 2 * PAGE), (address, 4 * PAGE)):
            self.assertEqual(self.register_raw(self.client, at, size)[0], -errno.EEXIST)
        self.assertEqual(self.register_raw(self.client, address + 2 * PAGE, PAGE)[0], 0)
        self.assertEqual(pnfsrdma._library.pnfsrdma_unregister(self.client._pointer, address + PAGE), -errno.EINVAL)
        allocated = self.client.alloc(PAGE)
        self.assert_fails(errno.EINVAL, self.client.unregister, allocated)
        self.client.free(memoryview(memory))  # refused: it is not from alloc()
        self.client.free(allocated)
        for at in (address, address + 2 * PAGE):
            self.assertEqual(pnfsrdma._library.pnfsrdma_unregister(self.client._pointer, at), 0)

    def test_what_is_no_sealed_memfd_is_refused_with_its_reason(self):
        cases = [(memfd(seals=0), MIB, errno.EINVAL, "F_SEAL_SHRINK"), (memfd(), 2 * MIB, errno.EINVAL, "has 1048576 bytes"),
                 (memfd(), 100, errno.EINVAL, "whole pages"), (memfd(), 0, errno.EINVAL, "whole pages"),
                 (os.pipe()[0], PAGE, errno.EINVAL, "not a memfd"), (os.open("/dev/zero", os.O_RDWR), PAGE, errno.EINVAL, "not a memfd"),
                 (-1, PAGE, errno.EBADF, "memfd"), (memfd(seals=F_SEAL_SHRINK | F_SEAL_WRITE), MIB, errno.EPERM, "mapping")]
        read_only = os.open(f"/proc/self/fd/{memfd()}", os.O_RDONLY)
        cases.append((read_only, MIB, errno.EACCES, "mapping"))
        file = os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR)
        os.ftruncate(file, MIB)
        cases.append((file, MIB, errno.EINVAL, "F_SEAL_SHRINK"))
        for client in (self.client, self.mounted):
            for descriptor, size, number, text in cases:
                self.assertIn(text, self.assert_fails(number, client.register_fd, descriptor, size))
        for descriptor, *_ in cases:
            if descriptor >= 0:
                os.close(descriptor)

    def test_memory_of_a_device_is_refused(self):
        try:
            device = os.open("/dev/udmabuf", os.O_RDWR)
        except OSError as error:
            self.skipTest(f"no dma-buf can be made: {error}")
        backing = memfd()
        dma_buf = fcntl.ioctl(device, 0x40187542, struct.pack("IIQQ", backing, 1, 0, MIB))  # UDMABUF_CREATE
        for client in (self.client, self.mounted):
            self.assertIn("dma-buf", self.assert_fails(errno.ENOTSUP, client.register_fd, dma_buf, MIB))

    def test_children_do_not_have_it(self):
        memory = mmap.mmap(-1, PAGE)
        for registered in (True, False):
            self.client.register(memory) if registered else self.client.unregister(memory)
            child = os.fork()
            if child == 0:
                signal.signal(signal.SIGSEGV, signal.SIG_DFL)
                os._exit(memory[0])
            _, status = os.waitpid(child, 0)
            self.assertEqual(os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, not registered)

    def test_it_stays_while_an_operation_is_under_way(self):
        descriptor = memfd(2 * PAGE)
        anonymous = mmap.mmap(-1, 2 * PAGE)
        self.client.register(anonymous)
        for client, memory in ((self.client, memoryview(anonymous)), (self.client, self.client.register_fd(descriptor, 2 * PAGE)),
                               (self.mounted, self.mounted.register_fd(descriptor, 2 * PAGE))):
            with client.open("file", os.O_RDWR) as file, client.queue(4) as queue:
                self.assertEqual(file.preadinto(memory, 0), 2 * PAGE)  # there is a layout
                self.cluster.signal("brick", signal.SIGSTOP)
                queue.submit([file.operation(pnfsrdma.READ, memory[PAGE:], 0)])
                self.assertIn("under way", self.assert_fails(errno.EBUSY, client.unregister, memory))
                self.cluster.signal("brick", signal.SIGCONT)
                self.assertEqual(queue.reap()[0].result, PAGE)
                client.unregister(memory)
        os.close(descriptor)

    def test_a_mount_survives_what_a_program_does_to_its_memfd(self):
        descriptor = memfd()
        memory = self.mounted.register_fd(descriptor, MIB)
        with self.assertRaises(PermissionError):
            os.ftruncate(descriptor, PAGE)
        with self.mounted.open("file", os.O_RDWR) as file, self.mounted.queue(4) as queue:
            for opcode in (pnfsrdma.READ, pnfsrdma.WRITE):
                memory[:] = bytes(MIB)
                self.assertEqual(LIBC.fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, ctypes.c_long(0), ctypes.c_long(MIB)), 0)
                queue.submit([file.operation(opcode, memory, 0)])
                self.assertEqual(queue.reap()[0].result, MIB)
            os.ftruncate(descriptor, 2 * MIB)  # growing it is the program's own business
            self.assertEqual(file.preadinto(memory, 0), MIB)
            self.assertTrue(memory == bytes(MIB))
        self.mounted.unregister(memory)
        os.close(descriptor)
        self.assertIsNone(self.mount.process.poll())

    def test_a_map_is_where_it_is_wanted(self):
        size = 4 * PAGE
        place = LIBC.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        for client in (self.client, self.mounted):
            with client.open("file", os.O_RDWR) as file:
                ctypes.memmove(place, b"mine", 4)
                for at in (place, place - PAGE, place + size - PAGE):
                    if at != place - PAGE:
                        self.assertIn("mapped", self.assert_fails(errno.EEXIST, file.map, 0, size, at))
                    else:
                        self.assertIn("mapped", self.assert_fails(errno.EEXIST, file.map, 0, 2 * PAGE, at))
                self.assertEqual(ctypes.string_at(place, 4), b"mine")
                self.assert_fails(errno.EINVAL, file.map, 0, size, place + 8)
                LIBC.munmap(place, size)
                with file.map(PAGE, size - 100, place) as image:
                    self.assertEqual(ctypes.addressof(ctypes.c_char.from_buffer(image.memory)), place)
                    self.assertEqual(bytes(image.memory), file.pread(size - 100, PAGE))
                    image.memory[8:16] = struct.pack("Q", place)  # a pointer into itself
                    image.sync([(8, 8)])
                    self.assert_fails(errno.EEXIST, file.map, 0, size, place)
                with file.map(PAGE, size, place) as image:
                    self.assertEqual(struct.unpack("Q", image.memory[8:16])[0], place)
                again = LIBC.mmap(place, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
                self.assertEqual(again, place)
        LIBC.munmap(place, size)


if __name__ == "__main__":
    unittest.main()
