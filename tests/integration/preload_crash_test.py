#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs under libpnfsrdma-preload.so beside a model of a file, and while programs, mounts and bricks end.

usage: preload_crash_test.py BIN_DIRECTORY      (PNFSRDMA_TEST_SEED: the first seed)
"""
import os
import signal
import subprocess
import time
import unittest

from preload_case import Case  # first: see there
import cluster

SEED = int(os.environ.get("PNFSRDMA_TEST_SEED", "1"))

# As fsx: a file, and what it must be. `others`: descriptors of the file that were opened in other ways.
EXERCISER = """
rng = random.Random(int(sys.argv[2]))
model = bytearray(open(PATH, "rb").read())
file = os.open(PATH, os.O_RDWR)
others = [os.open(PATH, os.O_RDWR | os.O_DIRECT), os.open(PATH, os.O_RDWR | os.O_DSYNC), os.dup(file), file]
appends = os.open(PATH, os.O_RDWR | os.O_APPEND)
mapped = None
MOST = 3 << 20

def place():
    length = rng.choice([1, 100, PAGE, 3 * PAGE, 20000, 65536])
    return rng.randrange(max(len(model) - 1, 1)), length

def read():
    at, length = place()
    got = os.pread(rng.choice(others), length, at)
    assert got == model[at:at + length], ("read", at, length)

def read_at_position():
    at, length = place()
    each = rng.choice(others)
    os.lseek(each, at, os.SEEK_SET)
    for _ in range(rng.randrange(1, 4)):
        got = os.read(each, length)
        assert got == model[at:at + length], ("read at position", at, length)
        at += len(got)
        assert os.lseek(each, 0, os.SEEK_CUR) == at

def write():
    at, length = place()
    data = rng.randbytes(length)
    assert os.pwrite(rng.choice(others), data, at) == length
    model[at:at + length] = data

def write_at_position():
    at, length = place()
    each = rng.choice(others)
    os.lseek(each, at, os.SEEK_SET)
    data = [rng.randbytes(length // 2), rng.randbytes(length - length // 2)]
    assert os.writev(each, data) == length and os.lseek(each, 0, os.SEEK_CUR) == at + length
    model[at:at + length] = b"".join(data)

def append():
    if len(model) < MOST:
        data = rng.randbytes(rng.randrange(1, 9000))
        assert os.write(appends, data) == len(data)
        model.extend(data)

def truncate():
    unmap()
    size = rng.randrange(MOST // 2, MOST)
    os.ftruncate(rng.choice(others), size)
    del model[size:]
    model.extend(bytes(size - len(model)))

def allocate():
    at, length = place()
    os.posix_fallocate(file, at, length)
    model.extend(bytes(max(0, at + length - len(model))))

def unmap():
    global mapped
    if mapped is not None:
        mapped.close()
        mapped = None

def touch_mapping():
    global mapped
    if mapped is None:
        mapped = mmap.mmap(file, len(model))
    at = rng.randrange(len(mapped))
    assert mapped[at:at + 3000] == model[at:min(at + 3000, len(mapped))], ("mapping", at)
    data = rng.randbytes(min(500, len(mapped) - at))
    mapped[at:at + len(data)] = data
    model[at:at + len(data)] = data

def forget_pages():
    unmap()
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)

def reopen():
    i = rng.randrange(3)
    os.close(others[i])
    others[i] = os.open(PATH, os.O_RDWR | [os.O_DIRECT, os.O_DSYNC, 0][i])

def child():
    at, length = place()
    pid = os.fork()
    if pid == 0:
        ok = os.pread(file, length, at) == model[at:at + length]
        if ok:
            os.pwrite(file, b"child", at)
        os._exit(0 if ok else 1)
    assert os.waitpid(pid, 0)[1] == 0, ("child", at, length)
    model[at:at + 5] = b"child"
    model.extend(b"" if len(model) >= at + 5 else b"child"[len(model) - at:])

CHOICES = [(read, 30), (read_at_position, 10), (write, 30), (write_at_position, 10), (append, 3), (truncate, 1), (allocate, 1),
           (touch_mapping, 5), (forget_pages, 6), (reopen, 3), (child, 1)]
for step in range(int(sys.argv[3])):
    action = rng.choices([action for action, _ in CHOICES], [weight for _, weight in CHOICES])[0]
    try:
        action()
        assert os.fstat(file).st_size == len(model), "size"
    except (AssertionError, OSError) as error:
        raise SystemExit(f"seed {sys.argv[2]}, step {step}, {action.__name__}: {error!r}")
unmap()
os.fsync(file)
assert os.pread(file, len(model) + 1, 0) == model
open(sys.argv[4], "wb").write(model)
"""


class Exerciser(Case):
    def test_a_file_is_what_was_written_to_it(self):
        for seed in range(SEED, SEED + 2):
            with self.subTest(seed):
                path = self.path = self.make(f"exercised{seed}")
                model = self.cluster.home / "model"
                self.python(EXERCISER, seed, 5000, model)
                self.forget_pages(path)
                self.assertTrue(path.read_bytes() == model.read_bytes())
                found = self.statistics()
                self.assertGreater(found["ring-reads"], 200, found)
                self.assertGreater(found["ring-writes"], 200, found)
                self.assertGreater(found["kernel"], 500, found)


class Ends(Case):
    options = {"lease_seconds": 10}

    def test_what_was_synced_outlives_the_program(self):
        text = """
            file = os.open(PATH, os.O_RDWR)
            turn = 0
            while True:
                turn += 1
                for i in range(64):
                    os.pwrite(file, b"%08d" % turn * 64, at(i))
                os.fdatasync(file)
                print(turn, flush=True)
        """
        place = lambda i: (i * 37 % 509) * 4096
        for round_number in range(5):
            program = self.start(text)
            last = 0
            for _ in range(20 + round_number):
                last = int(program.stdout.readline())
            time.sleep(0.01 * round_number)
            program.send_signal(signal.SIGKILL)
            out, _ = program.communicate(timeout=60)
            last = int(out.split()[-1]) if out.split() else last
            self.forget_pages(self.path)
            with open(self.path, "rb") as file:
                for i in range(64):
                    written = os.pread(file.fileno(), 512, place(i))
                    self.assertGreaterEqual(int(written[:8]), last, f"round {round_number}, place {i}")
                    self.assertEqual(written, written[:8] * 64)

    def test_a_brick_that_stops_for_five_seconds(self):
        program = self.start("""
            file = os.open(PATH, os.O_RDWR)
            ends = time.monotonic() + 8
            turn, longest = 0, 0
            while time.monotonic() < ends:
                turn += 1
                began = time.monotonic()
                sent = b"%08d" % turn * 512
                assert os.pwrite(file, sent, at(turn % 500)) == PAGE
                assert os.pread(file, PAGE, at(turn % 500)) == sent
                longest = max(longest, time.monotonic() - began)
            os.fsync(file)
            print(turn, longest)
        """)
        time.sleep(1)
        self.cluster.signal("brick", signal.SIGSTOP)
        time.sleep(5)
        self.cluster.signal("brick", signal.SIGCONT)
        turns, longest = self.finish(program).split()
        self.assertGreater(int(turns), 50)
        self.assertGreater(float(longest), 2)
        self.assertLess(float(longest), 30)

    def test_a_signal_ends_a_program_that_waits_for_a_brick(self):
        program = self.start("""
            file = os.open(PATH, os.O_RDWR)
            os.pread(file, 8, at(3))
            print(1, flush=True)
            for i in range(4, 500):
                os.pread(file, 8, at(i))
                time.sleep(0.01)
        """)
        self.assertEqual(program.stdout.readline(), "1\n")
        self.cluster.signal("brick", signal.SIGSTOP)
        try:
            time.sleep(1)
            program.send_signal(signal.SIGTERM)
            self.assertEqual(program.wait(timeout=20), -signal.SIGTERM)
        finally:
            self.cluster.signal("brick", signal.SIGCONT)
        program.communicate()


class MountEnds(Case):
    def test_a_mount_that_dies_and_comes_again(self):
        program = self.start("""
            file = os.open(PATH, os.O_RDWR)
            for i in range(1, 9):
                os.pwrite(file, b"%08d" % i, at(i))
            os.fsync(file)
            print("ready", flush=True)
            sys.stdin.readline()
            for call in (os.pread, file, 8, at(20)), (os.pwrite, file, b"x", at(21)), (os.fsync, file):
                try:
                    raise AssertionError(call[0](*call[1:]))
                except OSError as error:
                    assert error.errno in (errno.ENOTCONN, errno.ECONNABORTED), error
            try:
                os.close(file)
            except OSError:
                pass
            print("closed", flush=True)
            sys.stdin.readline()
            file = os.open(PATH, os.O_RDWR)
            for i in range(1, 9):
                assert os.pread(file, 8, at(i)) == b"%08d" % i
        """, stdin=subprocess.PIPE)

        def tell():
            program.stdin.write("\n")
            program.stdin.flush()

        self.assertEqual(program.stdout.readline(), "ready\n")
        self.mount.process.kill()
        self.mount.process.wait()
        tell()
        said = program.stdout.readline()
        self.assertEqual(said, "closed\n", program.stderr.read() if not said else "")
        subprocess.run(["umount", "-l", str(self.mount.path)], check=True)
        type(self).mount = self.cluster.mount(name=self.mount.name)
        tell()
        program.stdin.close()
        program.stdin = None
        self.finish(program)
        self.assert_moved(ring_reads=range(6, 9), ring_writes=range(6, 9), gone=range(1, 4), handed_back=range(0, 4))


if __name__ == "__main__":
    cluster.require_mounts()
    unittest.main()
