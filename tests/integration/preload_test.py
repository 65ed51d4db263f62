#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that know nothing of us, under libpnfsrdma-preload.so: what goes past the kernel, what does not, and that nobody
could tell.

usage: preload_test.py BIN_DIRECTORY
"""
import mmap
import os
import shutil
import signal
import subprocess
import unittest

from preload_case import BIN, LIBRARY, MIB, PAGE, Case, filled, page  # first: see there
import cluster

NOBODY = 65534
ANY = range(1, 1 << 30)


class Moves(Case):
    def test_needs_the_c_library_and_nothing_else(self):
        linked = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
        self.assertEqual([line.split("[")[1].rstrip("]") for line in linked.splitlines() if "NEEDED" in line][:1], ["libc.so.6"])
        self.assertNotIn("libstdc++", linked)

    def test_reads_and_overwrites_go_past_the_kernel(self):
        out = self.python("""
            file = os.open(PATH, os.O_RDWR)
            for i in range(1, 20):
                assert os.pread(file, PAGE, at(i)) == b"%08d" % (at(i) // PAGE) * 512
            one, two = bytearray(1000), bytearray(3096)
            assert os.preadv(file, [one, two], at(30)) == PAGE
            assert bytes(one + two) == b"%08d" % (at(30) // PAGE) * 512
            os.lseek(file, at(31), os.SEEK_SET)
            assert os.read(file, 5000)[:8] == b"%08d" % (at(31) // PAGE)
            assert os.lseek(file, 0, os.SEEK_CUR) == at(31) + 5000
            assert os.pwrite(file, b"a" * PAGE, at(40)) == PAGE
            assert os.pwritev(file, [b"b" * 10, b"c" * 20], at(41)) == 30
            os.lseek(file, at(42), os.SEEK_SET)
            assert os.write(file, b"d" * 100) == 100
            assert os.writev(file, [b"e" * 50, b"f" * 50]) == 100
            assert os.lseek(file, 0, os.SEEK_CUR) == at(42) + 200
            os.fsync(file)
            os.fdatasync(file)
            assert os.pread(file, 200, at(42)) == b"d" * 100 + b"e" * 50 + b"f" * 50
        """)
        self.assertEqual(out, "")
        self.assert_moved(ring_reads=22, ring_writes=4)
        data = self.path.read_bytes()
        place = lambda i: (i * 37 % 509) * PAGE
        self.assertEqual(data[place(40):place(40) + PAGE], b"a" * PAGE)
        self.assertEqual(data[place(41):place(41) + 31], b"b" * 10 + b"c" * 20 + data[place(41) + 30:place(41) + 31])
        self.assertEqual(len(data), self.SIZE)

    def test_what_is_not_on_a_mount_costs_no_connection(self):
        self.python("""
            other = "/tmp/pnfsrdma-preload-test.%d" % os.getpid()
            file = os.open(other, os.O_RDWR | os.O_CREAT)
            os.unlink(other)
            os.pwrite(file, b"x" * 9000, 0)
            assert os.pread(file, 100, 5000) == b"x" * 100
            zero = os.open("/dev/zero", os.O_RDONLY)
            assert os.read(zero, 4) == bytes(4)
            assert not [name for name in os.listdir("/proc/self/fd") if int(name) > 900 and "statistics" not in os.readlink("/proc/self/fd/" + name)]
        """)
        self.assert_moved()

    def test_short_reads_growth_and_errors_are_the_kernels(self):
        self.python("""
            size = os.stat(PATH).st_size
            file = os.open(PATH, os.O_RDWR)
            assert len(os.pread(file, PAGE, size - 100)) == 100
            assert os.pread(file, PAGE, size) == b"" and os.pread(file, PAGE, size + 100) == b""
            os.lseek(file, size - 10, os.SEEK_SET)
            assert len(os.read(file, PAGE)) == 10 and os.lseek(file, 0, os.SEEK_CUR) == size
            assert os.pwrite(file, b"x" * 100, size - 50) == 100
            assert os.fstat(file).st_size == size + 50 and os.lseek(file, 0, os.SEEK_END) == size + 50
            fails(errno.EINVAL, os.pread, file, 1, -1)
            fails(errno.EINVAL, os.pwrite, file, b"x", -1)
            fails(errno.EBADF, os.pread, 777, 1, 0)
            reads, writes = os.open(PATH, os.O_RDONLY), os.open(PATH, os.O_WRONLY)
            for i in range(1, 3):
                fails(errno.EBADF, os.pwrite, reads, b"x", at(i))
                fails(errno.EBADF, os.pread, writes, 1, at(i))
                os.pread(reads, 1, at(i)), os.pwrite(writes, b"0", at(i))
            assert os.pread(file, 0, at(9)) == b"" and os.pwrite(file, b"", at(9)) == 0
            path = os.open(PATH, os.O_PATH)
            fails(errno.EBADF, os.pread, path, 1, 0)
            fails(errno.EISDIR, os.pread, os.open(os.path.dirname(PATH), os.O_RDONLY), 1, 0)
        """)
        self.assert_moved(ring_reads=2, ring_writes=range(0, 3), cached=range(0, 3), end=5, length=2, flags=range(0, 9))

    def test_errno_stays_as_it_was(self):
        self.python("""
            import ctypes
            libc = ctypes.CDLL(None, use_errno=True)
            file = os.open(PATH, os.O_RDWR)
            memory = ctypes.create_string_buffer(PAGE)
            for i in range(1, 5):
                ctypes.set_errno(77)
                assert libc.pread(file, memory, PAGE, ctypes.c_long(at(i))) == PAGE and ctypes.get_errno() == 77
        """)
        self.assert_moved(ring_reads=4)

    def test_what_is_read_in_sequence_and_what_is_long_is_the_kernels(self):
        self.python("""
            file = os.open(PATH, os.O_RDONLY)
            while os.read(file, PAGE):
                pass
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            assert len(os.pread(file, 1 << 20, 4096)) == 1 << 20
        """)
        self.assert_moved(sequence=512, end=1, length=1)

    def test_what_the_kernel_has_in_memory_it_reads_and_writes(self):
        self.path.read_bytes()
        self.python("""
            file = os.open(PATH, os.O_RDWR)
            for i in range(1, 9):
                assert os.pread(file, 8, at(i)) == b"%08d" % (at(i) // PAGE)
                os.pwrite(file, b"x", at(i) + 9)
        """)
        self.assert_moved(cached=16)

    def test_direct_and_data_sync_are_for_the_ring_and_sync_is_not(self):
        self.python("""
            memory = mmap.mmap(-1, PAGE)
            for flags in os.O_DIRECT, os.O_DSYNC, os.O_SYNC:
                file = os.open(PATH, os.O_RDWR | flags)
                for i in range(1, 4):
                    os.preadv(file, [memory], at(i + flags % 97))
                    os.pwritev(file, [memory], at(i + flags % 97))
        """)
        self.assert_moved(ring_reads=9, ring_writes=range(4, 7), sync=3, handed_back=range(0, 3))

    def test_what_comes_alone_is_the_kernels(self):
        text = """
            file = os.open(PATH, os.O_RDWR | os.O_DIRECT)
            def work(number):
                memory = mmap.mmap(-1, PAGE)
                for i in range(300):
                    os.preadv(file, [memory], at(i + number))
            threads = [threading.Thread(target=work, args=(i,)) for i in range(int(sys.argv[2]))]
            for each in threads: each.start()
            for each in threads: each.join()
            os.lseek(file, 0, os.SEEK_SET)
            fails(errno.EBADF, os.write, os.open(PATH, os.O_RDONLY), b"x")
        """
        self.python(text, 1, more={"PNFSRDMA_PRELOAD_ALONE": ""})
        self.assert_moved(alone=300, flags=range(0, 2))
        self.python(text, 8, more={"PNFSRDMA_PRELOAD_ALONE": ""})
        self.assertGreater(self.statistics()["ring-reads"], 0)

    def test_the_user_may_want_the_kernel_to_keep_what_is_read(self):
        self.python("""
            for flags in 0, os.O_DIRECT:
                file = os.open(PATH, os.O_RDWR | flags)
                memory = mmap.mmap(-1, PAGE)
                for i in range(1, 4):
                    os.preadv(file, [memory], at(i + 50))
        """, more={"PNFSRDMA_PRELOAD_READS": "kernel"})
        self.assert_moved(kept=3, ring_reads=range(0, 4), cached=range(0, 4))

    def test_statistics_come_by_standard_error_though_it_is_closed_by_then(self):
        done = subprocess.run(["sh", "-c", f"exec cat {self.path} >/dev/null"], capture_output=True, text=True, check=True,
                              env={**os.environ, "LD_PRELOAD": str(LIBRARY), "PNFSRDMA_PRELOAD_STATISTICS": "1"})
        self.assertRegex(done.stderr, r"pnfsrdma-preload: process=\d+ program=cat ring-reads=0 ring-writes=0 ring-bytes=0 kernel=\d+")


class Descriptors(Case):
    def test_appends_are_the_kernels(self):
        self.python("""
            for file in (os.open(PATH, os.O_RDWR | os.O_APPEND), os.open(PATH, os.O_RDWR)):
                fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
                size = os.fstat(file).st_size
                os.lseek(file, 5 * PAGE, os.SEEK_SET)
                assert os.write(file, b"end") == 3
                assert os.pread(file, 3, size) == b"end", "it went to the end"
                os.pwrite(file, b"END", 7 * PAGE)
                assert os.pread(file, 3, size + 3) == b"END", "so does this on Linux"
            fcntl.fcntl(file, fcntl.F_SETFL, 0)
            os.pwrite(file, b"x", 9 * PAGE)
            assert os.pread(file, 1, 9 * PAGE) == b"x"
        """)
        self.assert_moved(append=2, end=range(0, 9), cached=range(0, 9), ring_reads=range(0, 9), ring_writes=range(0, 2), handed_back=range(0, 2))

    def test_copies_of_a_descriptor_have_one_position(self):
        self.python("""
            file = os.open(PATH, os.O_RDWR)
            copies = [os.dup(file), os.dup2(file, 50), fcntl.fcntl(file, fcntl.F_DUPFD, 60)]
            os.lseek(file, 100 * PAGE, os.SEEK_SET)
            for i, each in enumerate([file, *copies] * 3):
                assert os.read(each, PAGE + 8)[:8] != b"", i
                assert os.lseek(file, 0, os.SEEK_CUR) == 100 * PAGE + (i + 1) * (PAGE + 8)
            os.close(file)
            os.lseek(50, 300 * PAGE, os.SEEK_SET)
            assert os.read(copies[0], 8) == b"%08d" % 300 and os.read(50, 8) == b"%08d" % 300
        """)
        found = self.statistics()
        self.assertGreater(found["ring-reads"], 0)

    def test_behind_a_fork_the_position_is_shared(self):
        self.python("""
            file = os.open(PATH, os.O_RDWR)
            os.pread(file, 8, at(3))
            os.lseek(file, 100 * PAGE, os.SEEK_SET)
            child = os.fork()
            if child == 0:
                assert os.read(file, PAGE)[:8] == b"%08d" % 100
                os.write(file, b"x" * PAGE)
                assert os.pread(file, 8, at(5)) == b"%08d" % (at(5) // PAGE)
                own = os.open(PATH, os.O_RDWR)
                for i in range(200, 210):
                    os.pread(own, 8, at(i))
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
            assert os.lseek(file, 0, os.SEEK_CUR) == 102 * PAGE
            assert os.read(file, 8) == b"%08d" % 102
            assert os.pread(file, PAGE, 101 * PAGE) == b"x" * PAGE
        """)
        self.assert_moved(ring_reads=range(10, 13), cached=range(1, 3), shared=1)

    def test_what_a_child_inherits_by_exec_continues_where_the_parent_was(self):
        self.python("""
            file = os.open(PATH, os.O_RDWR)
            os.lseek(file, 50 * PAGE, os.SEEK_SET)
            os.write(file, b"one")
            subprocess.run(["sh", "-c", "printf two"], stdout=file, check=True)
            os.posix_spawn("/bin/sh", ["sh", "-c", "printf three"], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, file, 1)])
            os.wait()
            os.write(file, b"four")
            assert os.system("printf five >&%d" % os.dup2(file, 9)) == 0
            assert os.lseek(file, 0, os.SEEK_CUR) == 50 * PAGE + 19
            assert os.pread(file, 19, 50 * PAGE) == b"onetwothreefourfive"
        """)
        self.assertEqual(self.statistics()["ring-writes"] > 0, True)

    def test_a_descriptor_sent_to_another_process_shares_its_position(self):
        self.python("""
            ours, theirs = socket.socketpair()
            child = os.fork()
            if child == 0:
                file = socket.recv_fds(theirs, 1, 1)[1][0]
                assert os.write(file, b"theirs") == 6
                sys.exit(0)
            file = os.open(PATH, os.O_RDWR)
            os.lseek(file, at(3), os.SEEK_SET)
            os.write(file, b"ours")
            socket.send_fds(ours, [b"x"], [file])
            assert os.waitpid(child, 0)[1] == 0
            os.write(file, b"again")
            assert os.pread(file, 15, at(3)) == b"ourstheirsagain"
        """)
        self.assertGreater(self.statistics()["ring-writes"], 0)

    def test_a_number_that_leads_elsewhere_by_now_is_noticed(self):
        other = self.make("other")
        self.python("""
            import ctypes
            libc = ctypes.CDLL(None)
            def syscall(number, *arguments):
                assert libc.syscall(number, *arguments) >= 0
            file = os.open(PATH, os.O_RDWR)
            os.pread(file, 8, at(3)), os.pwrite(file, b"kept", at(4))
            # Closed and used again by ways that nobody sees.
            syscall(3, file)
            memory = os.memfd_create("x")
            assert memory == file
            os.pwrite(memory, b"memory", at(3))
            assert os.pread(memory, 6, at(3)) == b"memory"
            syscall(3, memory)
            file = os.open(PATH, os.O_RDWR)
            os.pread(file, 8, at(5)), os.pwrite(file, b"kept", at(5))
            kept = os.dup(file)  # so that the mount knows its number on
            hidden = libc.syscall(257, -100, sys.argv[2].encode(), os.O_RDWR, 0)
            syscall(33, hidden, file)
            os.pwrite(file, b"other", at(6))
            assert os.pread(file, 8, at(7)) == b"%08d" % (at(7) // PAGE)
            # The same file, and a description that may not write.
            file = os.open(PATH, os.O_RDWR)
            os.pread(file, 8, at(8))
            hidden = libc.syscall(257, -100, PATH.encode(), os.O_RDONLY, 0)
            syscall(33, hidden, file)
            fails(errno.EBADF, os.pwrite, file, b"x", at(9))
        """, other)
        place = lambda i: (i * 37 % 509) * PAGE
        self.assertEqual(other.read_bytes()[place(6):place(6) + 5], b"other")
        self.assertEqual(self.path.read_bytes()[place(6):place(6) + 8], page(place(6) // PAGE)[:8])
        self.assertGreaterEqual(self.statistics()["ring-reads"], 3)

    def test_a_program_that_closes_all_it_does_not_know_goes_on_by_the_kernel(self):
        self.python("""
            file = os.open(PATH, os.O_RDWR)
            os.pread(file, 8, at(3))
            os.closerange(file + 1, 4096)
            others = [os.open(PATH + ".%d" % i, os.O_RDWR | os.O_CREAT) for i in range(3)]
            copies = [os.dup2(others[i % 3], 1000 + i) for i in range(20)]
            for i in range(4, 9):
                assert os.pread(file, 8, at(i)) == b"%08d" % (at(i) // PAGE)
                os.pwrite(file, b"x", at(i))
            assert [os.fstat(each).st_size for each in others] == [0, 0, 0], "nobody rang there"
        """, more={"PNFSRDMA_PRELOAD_STATISTICS": ""})

    def test_many_threads_and_descriptors_that_come_and_go(self):
        self.python("""
            ends = time.monotonic() + 3
            wrong = []
            def work(number):
                mine = random.Random(number)
                while time.monotonic() < ends and not wrong:
                    file = os.open(PATH, os.O_RDWR | (os.O_DIRECT if number % 2 else 0))
                    memory = mmap.mmap(-1, PAGE)
                    for _ in range(mine.randrange(1, 20)):
                        page = number * 32 + mine.randrange(32)
                        memory[:] = mine.randbytes(PAGE)
                        wanted = bytes(memory)
                        if os.pwritev(file, [memory], page * PAGE) != PAGE or os.preadv(file, [memory], page * PAGE) != PAGE or bytes(memory) != wanted:
                            wrong.append((number, page))
                    os.close(file)
            threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
            for each in threads: each.start()
            for each in threads: each.join()
            assert not wrong, wrong
        """)
        found = self.statistics()
        self.assertGreater(found["ring-writes"], 100)
        self.assertGreater(found["ring-reads"], 100)

    def test_privileges_and_limits_are_the_kernels(self):
        os.chmod(self.path, 0o6777)
        become = f"""
            os.setgroups([])
            os.setgid({NOBODY})
            os.setuid({NOBODY})
        """
        self.python(become + """
            file = os.open(PATH, os.O_RDWR)
            os.pwrite(file, b"x", at(3))
            assert os.fstat(file).st_mode & 0o7777 == 0o777, oct(os.fstat(file).st_mode)
        """)
        self.assert_moved(privileges=1)
        os.chmod(self.path, 0o666)
        self.forget_pages(self.path)
        self.python(become + """
            file = os.open(PATH, os.O_RDWR)
            os.pwrite(file, b"x", at(5))
            resource.setrlimit(resource.RLIMIT_FSIZE, (PAGE, PAGE))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            fails(errno.EFBIG, os.pwrite, file, b"x", at(6))
        """)
        self.assert_moved(ring_writes=1, limit=1)

    def test_who_forbids_itself_system_calls_is_left_alone(self):
        self.python("""
            import ctypes
            file = os.open(PATH, os.O_RDWR)
            os.pread(file, 8, at(3))
            assert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0
            os.pread(file, 8, at(4))
        """)
        self.assert_moved(ring_reads=1)


class Coherence(Case):
    def test_what_goes_past_the_kernel_is_what_others_see(self):
        self.path.read_bytes()
        with open(self.path, "r+b", buffering=0) as file, mmap.mmap(file.fileno(), 0) as mapped:
            self.forget_pages(self.path)
            descriptor = file.fileno()
            program = self.start("""
                file = os.open(PATH, os.O_RDWR)
                for line in sys.stdin:
                    what, place, text = line.split()
                    place = int(place)
                    if what == "write":
                        os.pwrite(file, text.encode(), place)
                        print("done", flush=True)
                    else:
                        print(os.pread(file, len(text), place).decode(), flush=True)
            """, stdin=subprocess.PIPE)

            def ask(what, place, text):
                program.stdin.write(f"{what} {place} {text}\n")
                program.stdin.flush()
                return program.stdout.readline().strip()

            for i in range(1, 40):
                place, text = (i * 37 % 509) * PAGE + i, f"number{i:06}"
                if i % 3 == 0:
                    os.pread(descriptor, 1, place)  # so that the kernel has it
                ask("write", place, text)
                self.assertEqual(os.pread(descriptor, len(text), place).decode(), text)
                self.assertEqual(mapped[place:place + len(text)].decode(), text)
                if i % 4 == 0:
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                text = f"kernel{i:06}"
                if i % 2:
                    os.pwrite(descriptor, text.encode(), place)
                else:
                    mapped[place:place + len(text)] = text.encode()  # and nobody syncs it
                self.assertEqual(ask("read", place, text), text)
                beside = f"beside{i:06}"
                ask("write", place + 100, beside)
                self.assertEqual(os.pread(descriptor, 12, place).decode(), text, "what lies in the same page is not lost")
                self.assertEqual(os.pread(descriptor, 12, place + 100).decode(), beside)
            program.stdin.close()
            program.stdin = None
            self.finish(program)
        self.assertGreater(self.statistics()["ring-writes"], 10)

    def test_a_programs_own_mapping_and_its_calls_are_one(self):
        self.python("""
            file = os.open(PATH, os.O_RDWR)
            mapped = mmap.mmap(file, 0)
            private = mmap.mmap(file, 0, flags=mmap.MAP_PRIVATE)
            for i in range(1, 60):
                mapped[at(i) + 5:at(i) + 8] = b"map"
                assert os.pread(file, 3, at(i) + 5) == b"map"
                os.pwrite(file, b"call", at(i) + 9)
                assert mapped[at(i) + 5:at(i) + 13] == b"map0call"[:3] + mapped[at(i) + 8:at(i) + 9] + b"call"
                os.pwrite(file, b"cold", at(i + 200))
                assert mapped[at(i + 200):at(i + 200) + 4] == b"cold" and private[at(i + 200):at(i + 200) + 4] == b"cold"
        """)
        found = self.statistics()
        self.assertGreater(found["cached"], 50)
        self.assertGreater(found["ring-writes"], 20)

    def test_truncation_holes_and_copies_within_the_kernel(self):
        self.python("""
            file = os.open(PATH, os.O_RDWR)
            os.pwrite(file, b"gone", at(3))
            os.ftruncate(file, at(3))
            assert os.pread(file, 4, at(3)) == b""
            os.truncate(PATH, 500 * PAGE)
            assert os.pread(file, 4, at(3)) == bytes(4)
            os.posix_fallocate(file, 0, 600 * PAGE)
            os.pwrite(file, b"there", 590 * PAGE)
            assert os.pread(file, 5, 590 * PAGE) == b"there"
            os.pwrite(file, b"sent", 200 * PAGE)
            ours, theirs = socket.socketpair()
            assert os.sendfile(ours.fileno(), file, 200 * PAGE, 4) == 4 and theirs.recv(4) == b"sent"
            os.lseek(file, 200 * PAGE, os.SEEK_SET)
            assert os.read(file, 2) == b"se"
            assert os.sendfile(ours.fileno(), file, None, 2) == 2 and theirs.recv(2) == b"nt"
            assert os.lseek(file, 0, os.SEEK_CUR) == 200 * PAGE + 4
            target = os.open(PATH + ".copy", os.O_RDWR | os.O_CREAT)
            assert os.copy_file_range(file, target, 4, 200 * PAGE, 0) == 4 and os.pread(target, 4, 0) == b"sent"
            reader, writer = os.pipe()
            assert os.splice(file, writer, 4, offset_src=200 * PAGE) == 4 and os.read(reader, 4) == b"sent"
        """)
        self.assertGreater(self.statistics()["ring-writes"], 0)

    def test_two_programs_at_once(self):
        text = """
            file = os.open(PATH, os.O_RDWR)
            number = int(sys.argv[2])
            mine = random.Random(number)
            for turn in range(1500):
                page = mine.randrange(256) * 2 + number
                sent = mine.randbytes(PAGE)
                assert os.pwrite(file, sent, page * PAGE) == PAGE
                assert os.pread(file, PAGE, page * PAGE) == sent, page
        """
        for each in [self.start(text, number) for number in (0, 1)]:
            self.finish(each)
        self.assertGreater(self.statistics()["ring-writes"], 1000)


class Programs(Case):
    def test_dd(self):
        source, target = self.cluster.home / "source", self.cluster.home / "target"
        source.write_bytes(os.urandom(MIB))
        self.command("dd", f"if={source}", f"of={self.path}", "bs=16k", "conv=notrunc,fsync", "seek=8")
        self.command("dd", f"if={self.path}", f"of={target}", "bs=16k", "skip=8", "iflag=direct", "count=64")
        self.assertEqual(target.read_bytes(), source.read_bytes())
        self.assertEqual(self.path.read_bytes()[:8 * 16384], filled(8 * 16384))
        self.assert_moved(ring_writes=64, ring_reads=64)

    def test_cp_and_cmp(self):
        copy = self.mount / "copy"
        self.command("cp", self.path, copy)
        self.command("cp", "--reflink=never", "--sparse=always", self.path, copy)
        self.command("cmp", self.path, copy)
        self.assertEqual(copy.read_bytes(), self.path.read_bytes())

    def test_tail_follows_what_grows(self):
        log = self.mount / "log"
        log.write_text("first\n")
        with subprocess.Popen(["tail", "-f", log], stdout=subprocess.PIPE, text=True, env=self.environment()) as tail:
            self.assertEqual(tail.stdout.readline(), "first\n")
            self.python("""
                file = os.open(PATH, os.O_WRONLY)
                os.lseek(file, 0, os.SEEK_END)
                os.write(file, b"second\\n")
            """.replace("PATH", repr(str(log))))
            self.assertEqual(tail.stdout.readline(), "second\n")
            tail.send_signal(signal.SIGTERM)

    def test_sqlite(self):
        self.python("""
            try:
                import sqlite3
            except ImportError:
                sys.exit(0)
            for mode in "DELETE", "WAL":
                base = sqlite3.connect(PATH + mode)
                base.execute(f"PRAGMA journal_mode={mode}")
                base.execute("PRAGMA cache_size=10")
                base.execute("CREATE TABLE t(i INTEGER PRIMARY KEY, text)")
                base.executemany("INSERT INTO t VALUES(?, ?)", [(i, "x" * (i % 700)) for i in range(3000)])
                base.commit()
                for turn in range(20):
                    base.executemany("UPDATE t SET text = ? WHERE i = ?", [("y" * (turn * 30), i) for i in range(turn, 3000, 61)])
                    base.commit()
                assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                base.close()
                assert sqlite3.connect(PATH + mode).execute("SELECT count(*) FROM t").fetchone() == (3000,)
        """)


class Run(Case):
    def run_command(self, *words, **options):
        options.setdefault("env", {**os.environ, "PNFSRDMA_PRELOAD_ALONE": "ring"})
        return subprocess.run([BIN / "pnfsrdma", "run", *map(str, words)], capture_output=True, text=True, timeout=60, check=False, **options)

    def test_starts_a_program_with_its_own_words(self):
        done = self.run_command("printf", "%s.", "--json", "-y", "--", "--help")
        self.assertEqual((done.returncode, done.stdout), (0, "--json.-y.--.--help."))
        self.assertEqual(self.run_command("sh", "-c", "exit 77").returncode, 77)
        done = self.run_command("env", env={**os.environ, "LD_PRELOAD": "/lib/other.so"})
        self.assertIn(f"LD_PRELOAD={LIBRARY}:/lib/other.so\n", done.stdout)

    def test_says_what_went_which_way(self):
        done = self.run_command("--statistics", "dd", f"if={self.path}", "of=/dev/null", "bs=16k", "iflag=direct", "count=9")
        self.assertIn("program=dd ring-reads=9 ring-writes=0 ring-bytes=147456 kernel=0", done.stderr)
        self.forget_pages(self.path)
        done = self.run_command("--statistics", "--kernel-reads", "dd", f"if={self.path}", "of=/dev/null", "bs=16k", "skip=3", "count=1")
        self.assertIn("kernel=1 kept=1", done.stderr)

    def test_ends_as_env_does(self):
        self.assertEqual(self.run_command("pnfsrdma-no-such-program").returncode, 127)
        self.assertEqual(self.run_command("./pnfsrdma-no-such-program").returncode, 127)
        self.assertEqual(self.run_command("/etc/passwd").returncode, 126)
        done = self.run_command("--library", "/nowhere.so", "true")
        self.assertEqual(done.returncode, 126)
        self.assertIn("--library", done.stderr)
        self.assertEqual(self.run_command().returncode, 2)
        self.assertIn("--kernel-reads", self.run_command("--help").stdout)

    def test_warns_where_the_library_will_not_be_loaded(self):
        source, program = self.cluster.home / "static.c", self.cluster.home / "static"
        source.write_text("int main(void) { return 3; }\n")
        if shutil.which("cc") is None or subprocess.run(["cc", "-static", "-o", program, source], capture_output=True, check=False).returncode:
            self.skipTest("nothing here links statically")
        script = self.cluster.home / "script"
        script.write_text(f"#!{program}\n")
        script.chmod(0o755)
        copy = self.cluster.home / "setuid"
        shutil.copy("/bin/true", copy)
        os.chown(copy, NOBODY, NOBODY)
        os.chmod(copy, 0o4755)
        for path, code, words in (program, 3, "statically"), (script, 3, "statically"), (copy, 0, "set-user-id"):
            done = self.run_command(path)
            self.assertEqual(done.returncode, code)
            self.assertIn(words, done.stderr)
        self.assertEqual(self.run_command("true").stderr, "")


if __name__ == "__main__":
    cluster.require_mounts()
    unittest.main()
