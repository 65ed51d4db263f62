#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fio with our engine on a mount: what it writes is what the kernel reads, and the other way round.

usage: library_fio.py BIN_DIRECTORY ENGINE
"""
import json
import pathlib
import re
import subprocess
import sys
import unittest

import cluster

BIN, ENGINE = pathlib.Path(sys.argv[1]), sys.argv[2]
del sys.argv[1:3]


def sanitizers_runtimes():
    """A library with ASan needs them in the process from the start."""
    linked = subprocess.run(["ldd", ENGINE], capture_output=True, text=True, check=True).stdout
    return " ".join(re.findall(r"/\S*/lib(?:a|ub|t)san\.so\S*", linked))


class Fio(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster.Cluster(BIN, pool_size="512M").start_all()
        self.addCleanup(self.cluster.close)
        cluster.wait_until(lambda: "brick-ready" in self.cluster.log("mds"), 30, "the MDS has the brick")
        self.mount = self.cluster.mount("")
        self.path = self.mount.path

    def fio(self, *options, engine=f"external:{ENGINE}", expected=0):
        command = ["fio", "--name=job", f"--ioengine={engine}", f"--directory={self.path}", "--output-format=json",
                   "--verify_state_save=0", *options]
        environment = {"PATH": "/usr/bin:/bin", "LD_PRELOAD": sanitizers_runtimes(), "ASAN_OPTIONS": "detect_leaks=0"}
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
        self.assertEqual(ran.returncode, expected, ran.stdout + ran.stderr)
        return ran if expected else json.loads(ran.stdout[ran.stdout.index("{"):])["jobs"][0]

    def test_writes_and_verifies(self):
        job = self.fio("--size=16M", "--rw=randwrite", "--bs=4k", "--iodepth=32", "--verify=crc32c", "--filename=file")
        self.assertEqual(job["write"]["total_ios"], 4096)
        self.assertEqual(job["read"]["total_ios"], 4096)
        self.assertEqual(job["error"], 0)

    def test_what_it_writes_the_kernel_reads(self):
        self.fio("--size=8M", "--rw=write", "--bs=64k", "--iodepth=8", "--fdatasync=16", "--filename=file", "--verify=crc32c",
                 "--do_verify=0")
        self.fio("--size=8M", "--rw=read", "--bs=64k", "--filename=file", "--verify=crc32c", engine="psync")

    def test_what_the_kernel_writes_it_reads(self):
        self.fio("--size=8M", "--rw=write", "--bs=64k", "--filename=file", "--verify=crc32c", "--do_verify=0", "--end_fsync=1",
                 engine="psync")
        self.fio("--size=8M", "--rw=randread", "--bs=64k", "--iodepth=16", "--filename=file", "--verify=crc32c")

    def test_jobs_are_processes_or_threads(self):
        for how in ((), ("--thread",)):
            job = self.fio("--size=4M", "--rw=randrw", "--bs=4k", "--iodepth=8", "--numjobs=3", "--group_reporting", *how)
            self.assertEqual(job["read"]["total_ios"] + job["write"]["total_ios"], 3 * 1024)

    def test_durable_writes_need_no_sync(self):
        job = self.fio("--size=4M", "--rw=write", "--bs=4k", "--iodepth=4", "--durable=1", "--filename=file")
        self.assertEqual(job["write"]["total_ios"], 1024)

    def test_the_mount_may_be_named_with_slashes(self):
        for slashes in ("", "/", "//"):
            job = self.fio("--size=1M", "--rw=write", "--bs=64k", f"--mount={self.path}{slashes}", "--filename=file")
            self.assertEqual((job["write"]["total_ios"], job["error"]), (16, 0), slashes)

    def test_what_is_wrong_is_said(self):
        ran = self.fio("--size=1M", "--rw=write", "--mount=/proc", "--filename=file", expected=1)
        self.assertIn("pnfsrdma: /proc:", ran.stdout + ran.stderr)


if __name__ == "__main__":
    unittest.main()
