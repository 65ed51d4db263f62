# SPDX-License-Identifier: Apache-2.0
"""What the tests of libpnfsrdma-preload.so share: daemons, a mount, and programs that run under it.

Import it first: it takes BIN_DIRECTORY off the arguments.
"""
import os
import pathlib
import subprocess
import sys
import textwrap
import unittest

import cluster

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
LIBRARY = BIN.parent / "lib" / "libpnfsrdma-preload.so"
PAGE = 4096
MIB = 1 << 20

# What each program begins with. `at` is a place far from those around: nothing is read ahead there.
PRELUDE = """
import errno, fcntl, mmap, os, random, resource, signal, socket, struct, subprocess, sys, threading, time
PATH = sys.argv[1]
PAGE = 4096
def fails(number, call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        assert error.errno == number, error
    else:
        raise AssertionError(f"{call.__name__} did not fail")
def at(i):
    return (i * 37 % 509) * PAGE
"""


def filled(size):
    """Each page says which one it is."""
    return b"".join((b"%08d" % i) * (PAGE // 8) for i in range(size // PAGE))


def page(i):
    return (b"%08d" % i) * (PAGE // 8)


class Case(unittest.TestCase):
    options = {}
    SIZE = 2 * MIB

    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster.Cluster(BIN, **{"pool_size": "512M", **cls.options}).start_all()
        cls.addClassCleanup(cls.cluster.close)
        cluster.wait_until(lambda: "brick-ready" in cls.cluster.log("mds"), 30, "the MDS has the brick")
        cls.mount = cls.cluster.mount()
        os.chmod(cls.mount.path, 0o777)

    def setUp(self):
        self.path = self.make("file")
        self.report = self.cluster.home / "statistics"
        self.report.unlink(missing_ok=True)

    def make(self, name, size=SIZE):
        path = self.mount / name
        path.write_bytes(filled(size))
        os.chmod(path, 0o666)
        self.forget_pages(path)
        return path

    def forget_pages(self, path):
        """What the kernel has of it in memory goes."""
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)

    def environment(self, **more):
        self.report.touch()
        os.chmod(self.report, 0o666)
        return {**os.environ, "LD_PRELOAD": str(LIBRARY), "PNFSRDMA_PRELOAD_STATISTICS": str(self.report),
                "PNFSRDMA_PRELOAD_ALONE": "ring", **more}

    def start(self, text, *arguments, **options):
        """A Python program under the library."""
        return subprocess.Popen([sys.executable, "-c", PRELUDE + textwrap.dedent(text), str(self.path), *map(str, arguments)],
                                env=self.environment(**options.pop("more", {})), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **options)

    def finish(self, process, code=0):
        try:
            out, errors = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        self.assertEqual(process.returncode, code, errors)
        return out

    def python(self, text, *arguments, code=0, **options):
        return self.finish(self.start(text, *arguments, **options), code)

    def command(self, *words, **options):
        done = subprocess.run(list(map(str, words)), env=self.environment(), capture_output=True, timeout=120, check=False, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def statistics(self):
        """Of all programs since the last call, together."""
        total = {}
        for line in self.report.read_text().splitlines():
            for word in line.split()[1:]:
                name, _, value = word.partition("=")
                if value.isdigit():
                    total[name] = total.get(name, 0) + int(value)
        self.report.write_text("")
        return total

    def assert_moved(self, **wanted):
        """By the ring and by the kernel, so many: what is not named, none. A value may be a range."""
        found = self.statistics()
        for name in ("process", "ring-bytes", "kernel"):
            found.pop(name, None)
        for name, value in wanted.items():
            name = name.replace("_", "-")
            count = found.pop(name, 0)
            self.assertTrue(count in value if isinstance(value, range) else count == value, f"{name} {count}, not {value}; {found}")
        self.assertEqual({name: count for name, count in found.items() if count}, {})
