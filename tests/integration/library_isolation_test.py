#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libpnfsrdma against the real daemons: a program reaches nothing by it that the same user could not reach by the mount, and
neither does one that speaks to the mount by hand (ring_client).

usage: library_isolation_test.py BIN_DIRECTORY
"""
import contextlib
import errno
import fcntl
import itertools
import json
import os
import pathlib
import resource
import signal
import stat
import struct
import subprocess
import time
import traceback
import unittest

from library_case import MIB, Case  # first: see there
import cluster
import pnfsrdma
import ring_client
from ring_client import READ, USE_DESCRIPTOR, WRITE, RingClient

OWNER, MEMBER, STRANGER, NAMED, GROUP = 61001, 61002, 61003, 61004, 61500
USERS = {"root": (0, []), "owner": (OWNER, []), "member": (MEMBER, [GROUP]), "stranger": (STRANGER, []), "named": (NAMED, [])}
ACCESS_MODES = {"read": os.O_RDONLY, "write": os.O_WRONLY, "both": os.O_RDWR}
NEITHER = 3  # open(2) asks for both rights, and the descriptor has none: for ioctl(2) alone
SIZE = 256 << 10  # more than what goes through the server


def as_user(user, groups, action):
    """What `action` returns in a process of that user, by JSON."""
    answer, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(answer)
            os.setgroups(groups)
            os.setgid(user)
            os.setuid(user)
            with os.fdopen(told, "w") as text:
                json.dump(action(), text)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(told)
    with os.fdopen(answer) as text:
        said = text.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the process of the user failed"
    return json.loads(said)


def attempt(call, *arguments):
    """What it returns (bytes as their length), or its errno's name."""
    try:
        done = call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return len(done) if isinstance(done, bytes) else done if isinstance(done, int) else 0


def by_kernel(path, flags):
    """What open(2), read(2) and write(2) of a file are answered."""
    try:
        file = os.open(path, flags | os.O_CLOEXEC)
    except OSError as error:
        return [errno.errorcode[error.errno]]
    try:
        return [0, attempt(os.pread, file, SIZE, 0), attempt(os.pwrite, file, b"by kernel", 100)]
    finally:
        os.close(file)


def by_library(client, name, flags):
    """The same, and what a queue makes of the last two."""
    try:
        file = client.open(name, flags)
    except OSError as error:
        return [errno.errorcode[error.errno]]
    memory = client.alloc(SIZE)
    with file, client.queue(2) as queue:
        told = [0, attempt(file.pread, SIZE, 0), attempt(file.pwrite, b"by kernel", 100)]
        for opcode, piece in ((pnfsrdma.READ, memory), (pnfsrdma.WRITE, memory[:9])):
            if opcode == pnfsrdma.WRITE:
                memory[:9] = b"by kernel"
            queue.submit([file.operation(opcode, piece, 0 if opcode == pnfsrdma.READ else 100)])
            result = queue.reap(1, 60)[0].result
            told.append(result if result >= 0 else errno.errorcode[-result])
        for call in (lambda: file.flush_and_verify([(0, 8)]), lambda: file.watch(0, 8).close(), lambda: file.fetch_and_add(0, 0),
                     lambda: file.signal(0, 8, 1), lambda: file.truncate(SIZE)):
            told.append(attempt(call))
    client.free(memory)
    return told


def expected_of_library(kernel, flags):
    """What follows of what the kernel has answered."""
    if kernel[0] != 0:
        return kernel
    reads, writes = flags != os.O_WRONLY, flags != os.O_RDONLY
    bad = "EBADF"
    return kernel + [kernel[1], kernel[2], 0 if reads else bad, 0 if reads else bad, 0 if reads and writes else bad, 0 if writes else bad,
                     0 if writes else "EINVAL"]


class Isolation(Case):
    options = {"lease_seconds": 5}
    mount_options = ""

    def reach(self):
        self.server = super().reach()
        self.mount = self.cluster.mount(self.mount_options)
        return str(self.mount.path)

    def tearDown(self):
        with contextlib.suppress(OSError):
            self.client.close()

    def made(self, name, mode=0o666, owner=0, group=0, content=None):
        path = self.mount / name
        path.write_bytes(bytes(SIZE) if content is None else content)
        os.chown(path, owner, group)
        os.chmod(path, mode)
        return path

    def ring(self, size=MIB, path=None):
        """A program that speaks by hand, and its memory."""
        ring = RingClient(path or self.mount.path)
        self.addCleanup(ring.close)
        number, memory = ring.add_memory(size)
        return ring, number, memory

    def opened(self, path, flags=os.O_RDWR | os.O_DIRECT):
        """With the layout there, as far as it may be had."""
        descriptor = os.open(path, flags)
        self.addCleanup(self.close, descriptor)
        if flags & os.O_ACCMODE in (os.O_RDONLY, os.O_RDWR):
            os.pread(descriptor, 4096, 0)
        if flags & os.O_ACCMODE == os.O_RDWR:
            os.pwrite(descriptor, os.pread(descriptor, 4096, 0), 0)
        return descriptor

    def close(self, descriptor):
        with contextlib.suppress(OSError):
            os.close(descriptor)

    def as_user(self, user, action, groups=()):
        return as_user(user, list(groups), action)


class Opening(Isolation):
    """Whoever opens what: the library is answered as open(2) is, and no operation says more than that."""
    own_client = False
    MODES = (0o600, 0o640, 0o660, 0o604, 0o606, 0o400, 0o222, 0o066, 0o111, 0o000)

    def compare(self, names, connect):
        def all_of_it(source):
            with pnfsrdma.connect(source) as client:
                return [[by_kernel(self.mount / name, flags), by_library(client, name, flags)]
                        for name in names for flags in ACCESS_MODES.values()]
        opened = 0
        for who, (user, groups) in USERS.items():
            answers = iter(self.as_user(user, lambda: all_of_it(connect), groups))
            for name, flags in itertools.product(names, ACCESS_MODES.values()):
                kernel, library = next(answers)
                with self.subTest(name, who=who, flags=flags):
                    wanted = expected_of_library(kernel, flags)
                    # Who may not read gets no layout, of a connection of his own: he has nothing to signal by.
                    if self.own_client and flags == os.O_WRONLY and kernel[0] == 0:
                        wanted[8] = library[8] if library[8] in (0, "EAGAIN") else wanted[8]
                    self.assertEqual(library, wanted)
                opened += kernel[0] == 0
        return opened

    def make_files(self):
        names = []
        for mode in self.MODES:
            names.append(f"{mode:03o}")
            self.made(names[-1], mode, OWNER, GROUP)
        entry, none = struct.Struct("<HHI"), 0xffffffff
        acl = struct.pack("<I", 2) + b"".join(entry.pack(*each) for each in (
            (1, 6, none), (2, 4, NAMED), (4, 0, none), (16, 6, none), (32, 0, none)))
        os.setxattr(self.made("acl", 0o600, OWNER, GROUP), "system.posix_acl_access", acl)
        for name, mode in (("closed", 0o700), ("listed", 0o744), ("passed", 0o711)):
            (self.mount / name).mkdir()
            names.append(f"{name}/file")
            self.made(names[-1], 0o666, OWNER, GROUP)
            os.chown(self.mount / name, OWNER, GROUP)
            os.chmod(self.mount / name, mode)
        return names + ["acl"]

    def test_who_may_open_what(self):
        opened = self.compare(self.make_files(), self.server if self.own_client else self.source)
        self.assertGreater(opened, 60, "not all was refused")


class OpeningAtTheServer(Opening):
    """A connection of its own, from the same address, by an export that believes whom it is told."""
    options = {"lease_seconds": 5, "insecure": True}
    own_client = True

    def test_who_makes_a_file_uses_it_whatever_its_mode(self):
        with self.at_server() as client:
            for flags in (os.O_RDWR | os.O_CREAT, os.O_RDWR | os.O_CREAT | os.O_EXCL):
                with client.open(f"new{flags}", flags, 0) as file:
                    file.pwrite(b"mine", 0)
                    self.assertEqual(file.pread(4, 0), b"mine")
                self.assert_fails(errno.EACCES, client.open, f"new{flags}", os.O_RDWR | os.O_CREAT)

    @contextlib.contextmanager
    def at_server(self):
        """As a user: root may all."""
        os.chmod(self.mount.path, 0o777)
        os.setegid(STRANGER)
        os.seteuid(STRANGER)
        try:
            with pnfsrdma.connect(self.server) as client:
                yield client
        finally:
            os.seteuid(0)
            os.setegid(0)


class Squashed(Isolation):
    """Root of this host is nobody to the server."""

    def test_root_is_nobody_by_the_library_too(self):
        self.made("roots", 0o600, content=b"r" * SIZE)
        self.made("owners", 0o600, OWNER, OWNER)
        self.made("public", 0o666)
        self.client.close()
        self.mount.unmount()
        self.cluster.stop("mds")
        values = json.loads((self.cluster.home / "mds.json").read_text())
        values["exports"][0]["root_squash"] = True
        self.cluster.write_config("mds", values)
        self.cluster.start_mds()
        cluster.wait_until(lambda: self.cluster.log("mds").count("brick-ready") > 1, 30, "the MDS has the brick")
        self.mount = self.cluster.mount(name="squashed")
        for source in (str(self.mount.path), self.server):
            with pnfsrdma.connect(source) as client:
                for name, flags in itertools.product(("roots", "owners", "public"), ACCESS_MODES.values()):
                    kernel = by_kernel(self.mount / name, flags)
                    self.assertEqual(by_library(client, name, flags), expected_of_library(kernel, flags), (source, name, flags))
                    self.assertEqual(kernel[0] == 0, name == "public", (name, kernel))
        self.client = pnfsrdma.connect(self.server)


class ReadOnly(Isolation):
    def refused_by_hand(self, path, flags):
        """Nothing that a ring or an ioctl(2) could do changes the file."""
        content = path.read_bytes()
        ring, memory, shared = self.ring(path=path)
        shared[:] = b"x" * len(shared)
        file = os.open(path, flags)
        number = ring.attach(file)
        for _ in range(3):
            self.assertEqual(ring.do(WRITE, number, memory, 0, 4096), -errno.EBADF)
        for call in (lambda: ring.append(file, memory, 0, 16), lambda: ring_client.fetch_and_add(file, 0, 1), lambda: ring_client.store(file, 0, 1),
                     lambda: ring_client.signal(file, 0, 8, 1), lambda: os.pwrite(file, b"x", 0)):
            self.assertEqual(attempt(call), "EBADF")
        with open(path, "rb") as source:
            secret = ring_client.offer_clone(source.fileno())
        self.assertEqual(attempt(ring_client.clone, file, secret), "EBADF")
        if flags == NEITHER:
            self.assertEqual(ring.do(READ, number, memory, 0, 4096), -errno.EBADF)
            for call in (lambda: ring_client.verify(file, [(0, 8)]), lambda: ring_client.offer_clone(file), lambda: os.pread(file, 1, 0)):
                self.assertEqual(attempt(call), "EBADF")
        os.close(file)
        self.assertEqual(path.read_bytes(), content)

    def test_a_mount_that_is_read_only(self):
        self.made("file", content=os.urandom(SIZE))
        mount = self.cluster.mount("ro")
        with pnfsrdma.connect(str(mount.path)) as client:
            for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_CREAT):
                self.assert_fails(errno.EROFS, client.open, "file", flags)
            for call, *arguments in ((client.mkdir, "d"), (client.unlink, "file"), (client.rename, "file", "other")):
                self.assert_fails(errno.EROFS, call, *arguments)
        self.assertEqual(attempt(os.open, mount / "file", NEITHER), "EROFS")
        self.refused_by_hand(mount / "file", os.O_RDONLY)

    def test_a_place_of_the_mount_that_is_bound_read_only(self):
        """As a container has it. Who opens for neither reading nor writing is not asked what the place allows."""
        path = self.made("file", content=os.urandom(SIZE))
        writer = self.opened(path)
        os.pwrite(writer, os.pread(writer, 4096, 0), 0)  # the layout is there
        bound = self.cluster.home / "bound"
        bound.mkdir()
        subprocess.run(["mount", "--bind", self.mount.path, bound], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", bound], check=False)
        subprocess.run(["mount", "-o", "remount,bind,ro", bound], check=True)
        with pnfsrdma.connect(str(bound)) as client:
            self.assert_fails(errno.EROFS, client.open, "file", os.O_RDWR)
        for flags in (os.O_RDONLY, NEITHER):
            with self.subTest(flags=flags):
                self.refused_by_hand(bound / "file", flags)

    def test_an_export_that_is_read_only(self):
        self.made("file", content=b"f" * SIZE)
        before, memory, shared = self.ring()
        file = self.opened(self.mount / "file")
        number = before.attach(file)
        self.assertEqual(before.do(WRITE, number, memory, 0, 4096), 4096)
        told = subprocess.run([str(self.cluster.bin / "pnfsrdma"), "--socket", f"{self.cluster.home}/console.sock", "export", "edit", "/",
                               "--read-only"], capture_output=True, text=True, check=False)
        self.assertEqual(told.returncode, 0, told.stderr)
        for source in (self.source, self.server):
            with pnfsrdma.connect(source) as client:
                self.assert_fails(errno.EROFS, client.open, "file", os.O_RDWR)
                with client.open("file") as readable:
                    self.assertEqual(len(readable.pread(SIZE, 0)), SIZE)
        # Who has it open writes on as long as the mount may, and no longer.
        shared[:4096] = b"y" * 4096
        kernel = attempt(os.pwrite, file, b"z" * 4096, 4096)
        ring = before.do(WRITE, number, memory, 0, 4096)
        self.assertIn(ring, (4096, USE_DESCRIPTOR) if kernel == 4096 else (USE_DESCRIPTOR, -errno.EIO), f"by the descriptor: {kernel}")
        self.refused_by_hand(self.mount / "file", os.O_RDONLY)


class Kept(Isolation):
    """What is open stays what it was, by the library as by the descriptor; what is closed is nothing."""

    def test_a_mode_that_changes_changes_no_open_file(self):
        path = self.made("file", 0o666, OWNER, OWNER)

        def use():
            with pnfsrdma.connect(self.source) as client:
                with client.open("file", os.O_RDWR) as file, client.queue(1) as queue:
                    kernel, memory = os.open(path, os.O_RDWR), client.alloc(4096)
                    file.pwrite(memory, 0)
                    os.write(open_told, b"x")
                    while stat.S_IMODE(os.fstat(kernel).st_mode) != 0:
                        time.sleep(0.05)
                    told = [attempt(os.pread, kernel, 4096, 0), attempt(os.pwrite, kernel, bytes(4096), 0)]
                    for opcode in (pnfsrdma.READ, pnfsrdma.WRITE):
                        queue.submit([file.operation(opcode, memory, 0)])
                        told.append(queue.reap(1, 60)[0].result)
                    client.free(memory)
                return told + [by_kernel(path, os.O_RDONLY), by_library(client, "file", os.O_RDONLY),
                               attempt(ring_client.find, str(path))]
        answer, told = os.pipe()
        opened, open_told = os.pipe()
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setgid(STRANGER)
            os.setuid(STRANGER)
            try:
                os.write(told, json.dumps(use()).encode())
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        os.close(told)
        os.close(open_told)
        os.read(opened, 1)
        os.close(opened)
        os.chmod(path, 0)
        os.chown(path, 0, 0)
        with os.fdopen(answer) as text:
            said = text.read()
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(json.loads(said), [4096, 4096, 4096, 4096, ["EACCES"], ["EACCES"], "EACCES"])

    def test_a_number_of_before_names_no_other_file(self):
        ring, memory, shared = self.ring()
        shared[:4096] = b"x" * 4096
        numbers, paths = [], []
        for turn in range(20):
            paths.append(self.made(f"file{turn}", content=bytes([65 + turn]) * SIZE))
            file = self.opened(paths[-1])
            numbers.append(ring.attach(file))
            self.assertEqual(ring.do(READ, numbers[-1], memory, 0, 4096), 4096)
            os.close(file)
            cluster.wait_until(lambda: ring.do(READ, numbers[-1], memory, 0, 4096) == -errno.EBADF, 20, "it has ended")
        kept = self.opened(self.made("kept", content=b"k" * SIZE))
        self.assertNotIn(ring.attach(kept), numbers)
        for number in numbers:
            for opcode in (READ, WRITE):
                self.assertEqual(ring.do(opcode, number, memory, 0, 4096), -errno.EBADF)
        for turn, path in enumerate(paths):
            self.assertEqual(path.read_bytes(), bytes([65 + turn]) * SIZE)

    def test_a_program_that_is_executed_inherits_nothing(self):
        """A descriptor of the library that stayed open would be the next program's."""
        before = set(os.listdir("/proc/self/fd"))
        self.made("file")
        client = pnfsrdma.connect(self.source)
        memory = client.alloc(4096)
        file = client.open("file", os.O_RDWR)
        with client.queue(4) as queue, file.watch(0, 8), client.open("file"):
            queue.submit([file.operation(pnfsrdma.READ, memory)])
            queue.reap(1)
            file.append(b"more")
            own = [int(each) for each in set(os.listdir("/proc/self/fd")) - before if os.path.exists(f"/proc/self/fd/{each}")]
            self.assertGreater(len(own), 8)
            self.assertEqual([os.readlink(f"/proc/self/fd/{each}") for each in own if os.get_inheritable(each)], [])
        file.close()
        client.free(memory)
        client.close()

    def test_who_gives_root_up_takes_set_id_bits_away_as_anybody(self):
        path = self.made("program", content=b"p" * SIZE)
        os.chmod(path, 0o6777)
        for user in (STRANGER, 0):
            os.chmod(path, 0o6777)

            def write():
                os.seteuid(0)
                ring, descriptor = RingClient(self.mount.path), os.open(path, os.O_RDWR | os.O_DIRECT)
                memory, _ = ring.add_memory(4096)
                number = ring.attach(descriptor)
                os.pread(descriptor, 4096, 0)
                os.setuid(user)
                return ring.do(WRITE, number, memory, 0, 4096)
            self.assertEqual(as_user(0, [], write), USE_DESCRIPTOR, "the kernel knows who it is")
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o6777)

    def test_a_file_grows_no_further_than_its_writer_may_let_it(self):
        path = self.made("file", 0o666, content=bytes(MIB))
        limit = 2 * MIB + 100  # the library's own memory has files of one

        def grow():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            with pnfsrdma.connect(self.source) as client, client.open("file", os.O_RDWR) as file, client.queue(1) as queue:
                memory = client.alloc(MIB)
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
                told = [attempt(file.append, memory), attempt(file.append, memory), attempt(file.append, bytes(101)),
                        attempt(file.append, bytes(100)), attempt(file.pwrite, b"x", limit), attempt(file.truncate, limit + 1)]
                for opcode, at in ((pnfsrdma.APPEND, 0), (pnfsrdma.WRITE, limit)):
                    queue.submit([file.operation(opcode, memory[:1], at)])
                    told.append(errno.errorcode.get(-queue.reap(1, 60)[0].result))
                client.free(memory)
            return told
        big = "EFBIG"
        self.assertEqual(self.as_user(STRANGER, grow), [MIB, big, big, 2 * MIB, big, big, big, big])
        self.assertEqual(path.stat().st_size, limit)


class Strangers(Isolation):
    """Programs of other users, who know what they should not."""

    def test_a_mount_takes_no_memory_that_its_program_could_not_write(self):
        """The mount's process is root's: it maps what it is given by the descriptor that it is given, with no more than that allows."""
        secret = ring_client.sealed_memory(MIB)
        read_only = os.open(f"/proc/self/fd/{secret}", os.O_RDONLY)

        def hand_over():
            ring = RingClient(self.mount.path)
            future = os.memfd_create("sealed", os.MFD_ALLOW_SEALING)
            os.ftruncate(future, MIB)
            fcntl.fcntl(future, 1033, 2 | 16)  # F_ADD_SEALS: F_SEAL_SHRINK, F_SEAL_FUTURE_WRITE
            told = [attempt(ring.ask, ring_client.ADD_MEMORY, 0, [descriptor]) for descriptor in (read_only, future, os.open("/etc/passwd", os.O_RDONLY))]
            return [told, attempt(ring.add_memory, MIB)]
        told, fine = self.as_user(STRANGER, hand_over)
        self.assertEqual(told, ["EACCES", "EPERM", "EINVAL"])
        self.assertNotIn(fine, ("EACCES", "EPERM", "EINVAL"))
        os.close(secret)
        os.close(read_only)

    def test_what_others_have_is_named_by_nobody(self):
        path = self.made("private", 0o600, content=b"s" * MIB)
        own = self.made("own", 0o666, content=b"o" * MIB)
        ring, memory, shared = self.ring()
        shared[:] = b"m" * len(shared)
        number = ring.attach(self.opened(path))
        self.assertEqual(ring.do(READ, number, memory, 0, 4096, memory_offset=8192), 4096)

        def guess():
            other = RingClient(self.mount.path)
            mine, bytes_of_mine = other.add_memory(MIB)
            descriptor = os.open(own, os.O_RDWR | os.O_DIRECT)
            attached = other.attach(descriptor)
            os.pwrite(descriptor, os.pread(descriptor, 4096, 0), 0)
            results = set()
            for file, at in itertools.product([*range(attached + 64), number], (READ, WRITE)):
                if file != attached:
                    results.add(other.do(at, file, mine, 0, 4096))
            for wanted in [*range(mine + 64), memory]:
                if wanted not in (mine, attached):
                    results.add(other.do(WRITE, attached, wanted, 0, 4096))
                    results.add(-errno.EFAULT if attempt(other.append, descriptor, wanted, 0, 16) == "EFAULT" else 0)
            secrets = [bytes(16), b"\xff" * 16, other.token, bytes(reversed(other.secret)), other.secret[:15] + bytes([other.secret[15] ^ 1])]
            refused = [attempt(other.attach, descriptor, secret) for secret in secrets]
            refused += [attempt(other.append, descriptor, mine, 0, 16, 0, secret) for secret in secrets]
            refused += [attempt(ring_client.watch, descriptor, secret, channel, 0, 8) for secret in secrets for channel in range(4)]
            return [sorted(results), sorted(set(refused)), bytes(bytes_of_mine[:4096]).hex()]
        results, refused, seen = self.as_user(STRANGER, guess)
        self.assertEqual(results, sorted([-errno.EBADF, -errno.EFAULT]))
        self.assertEqual(refused, ["EPERM"])
        self.assertEqual(bytes.fromhex(seen), bytes(4096), "nothing was read into his memory")
        self.assertEqual(path.read_bytes(), b"s" * MIB)
        self.assertEqual(own.read_bytes(), b"o" * MIB, "nor out of another one's")

    def test_a_mount_of_one_user_is_no_door_for_others(self):
        """He has found the socket, and even the token: there is nothing he could open, or ask of what he is handed."""
        mount = self.cluster.mount("noallow_other")
        (mount / "file").write_bytes(b"f" * SIZE)
        os.chmod(mount / "file", 0o666)
        found = ring_client.find(mount.path)
        handed = os.open(mount / "file", os.O_RDWR)
        self.addCleanup(os.close, handed)

        def try_all():
            told = [attempt(os.open, mount / "file", os.O_RDONLY), attempt(pnfsrdma.connect, str(mount.path))]
            ring = RingClient(None, found=found)
            told.append(attempt(ring.attach, handed))
            memory, _ = ring.add_memory(4096)
            told += [attempt(ring.append, handed, memory, 0, 16), attempt(ring_client.fetch_and_add, handed, 0, 1),
                     attempt(ring_client.verify, handed, [(0, 8)]), attempt(ring_client.signal, handed, 0, 8, 1)]
            return [*told, [ring.do(READ, number, memory, 0, 4096) for number in range(8)]]
        *refused, results = self.as_user(STRANGER, try_all)
        self.assertEqual(set(refused), {"EACCES"})
        self.assertEqual(results, [-errno.EBADF] * 8)
        self.assertEqual((mount / "file").read_bytes(), b"f" * SIZE)

    def test_memory_that_a_program_may_not_write_is_not_written_for_it(self):
        """A descriptor for reading of another one's memfd: the mount would be the one who writes there."""
        ring, _, _ = self.ring()
        memory = ring_client.sealed_memory(4096)
        self.addCleanup(os.close, memory)
        readable = os.open(f"/proc/self/fd/{memory}", os.O_RDONLY)
        self.addCleanup(os.close, readable)
        self.assert_fails(errno.EACCES, ring.ask, ring_client.ADD_MEMORY, 0, [readable])
        no_more = ring_client.sealed_memory(4096, seals=fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_WRITE)
        self.addCleanup(os.close, no_more)
        self.assert_fails(errno.EPERM, ring.ask, ring_client.ADD_MEMORY, 0, [no_more])

    def test_names_go_where_their_user_may_go(self):
        """A sticky directory, one that gives its group, one that is not the user's."""
        for name, mode in (("sticky", 0o1777), ("given", 0o2777), ("foreign", 0o755)):
            (self.mount / name).mkdir()
            os.chown(self.mount / name, 0, GROUP)
            os.chmod(self.mount / name, mode)
        for name in ("sticky/roots", "sticky/roots2", "foreign/roots"):
            self.made(name, 0o666)

        def change(source):
            with pnfsrdma.connect(source) as client:
                told = [[attempt(client.unlink, "sticky/roots"), attempt(os.unlink, self.mount / "sticky/roots")],
                        [attempt(client.unlink, "foreign/roots"), attempt(os.unlink, self.mount / "foreign/roots")],
                        [attempt(client.mkdir, "foreign/d"), attempt(os.mkdir, self.mount / "foreign/d")],
                        [attempt(client.open, "foreign/new", os.O_RDWR | os.O_CREAT), attempt(os.open, self.mount / "foreign/new", os.O_RDWR | os.O_CREAT)]]
                for pair in (("sticky/roots", "sticky/mine"), ("sticky/roots2", "foreign/x"), ("foreign/roots", "sticky/x")):
                    told.append([attempt(client.rename, *pair), attempt(os.rename, *[self.mount / name for name in pair])])
                client.mkdir("given/directory")
                client.open("given/file", os.O_RDWR | os.O_CREAT).close()
            return told
        for library, kernel in self.as_user(STRANGER, lambda: change(self.source)):
            self.assertIn(kernel, ("EPERM", "EACCES"))
            self.assertEqual(library, kernel)
        for name in ("directory", "file"):
            made = (self.mount / "given" / name).stat()
            self.assertEqual((made.st_uid, made.st_gid), (STRANGER, GROUP))
        self.assertTrue((self.mount / "given/directory").stat().st_mode & stat.S_ISGID)


class Unmounted(Isolation):
    def test_behind_a_lazy_unmount_it_is_as_with_the_descriptor(self):
        path = self.made("file", content=b"f" * SIZE)
        ring, memory, shared = self.ring()
        file = self.opened(path)
        number = ring.attach(file)
        subprocess.run(["umount", "-l", str(self.mount.path)], check=True)
        for _ in range(3):
            self.assertEqual(os.pread(file, 4096, 0), b"f" * 4096)
            self.assertEqual(ring.do(READ, number, memory, 0, 4096), 4096)
        os.close(file)

        def gone():
            try:
                return ring.do(READ, number, memory, 0, 4096) == -errno.EBADF
            except (ConnectionError, TimeoutError):
                return True
        cluster.wait_until(gone, 30, "with the last descriptor all of it ends")
        self.client.close()


if __name__ == "__main__":
    unittest.main()
