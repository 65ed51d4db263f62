# SPDX-License-Identifier: Apache-2.0
"""What the tests of libpnfsrdma share: daemons, and a connection through the Python bindings.

Import it first: it takes BIN_DIRECTORY off the arguments, and may start the program anew with a sanitizer's runtime.
"""
import errno
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import cluster

BIN = pathlib.Path(sys.argv[1])
LIBRARY = BIN.parent / "lib" / "libpnfsrdma.so.0"
MIB = 1 << 20


def run_with_the_sanitizers_runtime():
    """A library with ASan needs its runtime in the process from the start; Python's own leaks are not ours."""
    linked = subprocess.run(["ldd", LIBRARY], capture_output=True, text=True, check=True).stdout
    runtimes = re.findall(r"/\S*/lib(?:a|ub|t)san\.so\S*", linked)
    if runtimes and "PNFSRDMA_LIBRARY" not in os.environ:
        environment = {**os.environ, "LD_PRELOAD": " ".join(runtimes), "PNFSRDMA_LIBRARY": str(LIBRARY),
                       "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0"}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    os.environ["PNFSRDMA_LIBRARY"] = str(LIBRARY)
    preloaded = os.environ.pop("LD_PRELOAD", "")  # the daemons have their own
    os.environ["ASAN_OPTIONS"] = "detect_leaks=1"
    return preloaded


PRELOADED = run_with_the_sanitizers_runtime()
del sys.argv[1]
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "library" / "python"))
import pnfsrdma  # noqa: E402


class Case(unittest.TestCase):
    options = {}
    # Daemons for all tests of the class, which leave nothing but files; else for each.
    one_cluster = False

    @classmethod
    def setUpClass(cls):
        cls.kept = None

    def setUp(self):
        self.cluster = type(self).kept
        if self.cluster is None:
            self.cluster = cluster.Cluster(BIN, **{"pool_size": "512M", **self.options}).start_all()
            (self.addClassCleanup if self.one_cluster else self.addCleanup)(self.cluster.close)
            # Whoever connects before that is told of no memory: its durability is unknown.
            cluster.wait_until(lambda: "brick-ready" in self.cluster.log("mds"), 30, "the MDS has the brick")
        if self.one_cluster:
            type(self).kept = self.cluster
            self.addCleanup(self.make_empty, self.cluster)
        self.source = self.reach()
        self.client = pnfsrdma.connect(self.source)

    @staticmethod
    def make_empty(kept):
        """As at the start: no mount, no file."""
        for mount in kept.mounts:
            mount.close()
        kept.mounts.clear()
        mount = kept.mount()
        for path in mount.path.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        mount.path.chmod(0o755)
        mount.unmount()
        kept.mounts.clear()

    def reach(self):
        """What to connect to."""
        return f"127.0.0.1:{self.cluster.nfs_port}:/"

    def run_program(self, *command):
        """As the effective user and group, which are the real ones there."""
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, user=os.geteuid(),
                              group=os.getegid())

    def assert_fails(self, number, call, *arguments):
        with self.assertRaises(OSError) as caught:
            call(*arguments)
        self.assertEqual(errno.errorcode[caught.exception.errno], errno.errorcode[number], caught.exception)
        return str(caught.exception)
