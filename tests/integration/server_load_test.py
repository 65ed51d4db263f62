#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The load generator does every row, without an error, on our MDS and on NFS-Ganesha where that is installed. How fast is not
looked at.

usage: server_load_test.py BIN_DIRECTORY
"""
import contextlib
import json
import shutil
import subprocess
import sys
import unittest

import ganesha
from cluster import Cluster, free_port, require_mounts

BIN = sys.argv.pop(1)
ROWS = {"getattr", "lookup", "readdir", "open_close", "create", "lock", "layoutget", "write_stable", "write_commit"}
QUICK = ["--clients", "1,5", "--seconds", "0.1", "--rounds", "1"]


def generate(*arguments):
    return subprocess.run([f"{BIN}/bench-server", *arguments], capture_output=True, text=True, timeout=300)


@contextlib.contextmanager
def mounted(cluster):
    mount = cluster.mount()
    yield mount
    mount.unmount()


class Servers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, insecure=True)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_all()
        cls.ours = f"ours=127.0.0.1:{cls.cluster.nfs_port}"

    def lines(self, *arguments):
        """By (row, clients, loop), what was measured, and the whole report."""
        done = generate(*arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        return {(line["row"], line["clients"], line["loop"]): line["servers"] for line in report["lines"]}, report

    def assert_sound(self, servers, name):
        rounds = servers[name]["rounds"]
        self.assertGreater(sum(one["done"] for one in rounds), 0)
        self.assertEqual(sum(one["unfinished"] for one in rounds), 0)
        self.assertLessEqual(servers[name]["p50_us"], servers[name]["p99_us"])

    def test_every_row_does_operations(self):
        lines, _ = self.lines(self.ours, *QUICK)
        self.assertEqual(set(lines), {(row, clients, "closed") for row in ROWS for clients in (1, 5)})
        for servers in lines.values():
            self.assert_sound(servers, "ours")

    def test_an_open_loop_does_what_was_offered(self):
        lines, _ = self.lines(self.ours, "--clients", "2", "--rounds", "1", "--seconds", "1", "--open", "100",
                              "--open-clients", "50", "--rows", "getattr,lock,write_commit")
        for row in ("getattr", "lock", "write_commit"):  # with 200 slots, of which half have nothing to do
            servers = lines[row, 50, "open"]
            self.assert_sound(servers, "ours")
            self.assertAlmostEqual(servers["ours"]["rounds"][0]["done"], 100, delta=50)  # Poisson's

    def test_it_fills_folders(self):
        done = generate(self.ours, "--fill", "200", "--folders", "7", "--clients", "3", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["filled"]["ours"]["rates"]), 10)
        with mounted(self.cluster) as mount:
            made, = mount.path.glob("bench-server*")
            self.assertEqual(len(list(made.glob("m*/file*"))), 200)
            self.assertEqual(len(list(made.glob("m*"))), 7)
            shutil.rmtree(made)

    def test_nothing_of_it_is_left(self):
        with mounted(self.cluster) as mount:
            self.assertEqual([path.name for path in mount.path.iterdir() if path.name.startswith("bench-server")], [])

    def test_it_works_below_a_path_and_by_minor_version_2(self):
        with mounted(self.cluster) as mount:
            (mount / "a" / "b").mkdir(parents=True, exist_ok=True)
            self.lines(self.ours, *QUICK, "--path", "/a/b", "--minor-version", "2", "--rows", "create")
            self.assertEqual(list((mount / "a" / "b").iterdir()), [])

    def test_errors_have_their_exit_codes(self):
        self.assertEqual(generate(self.ours, "--rows", "dance").returncode, 2)
        self.assertEqual(generate("ours=nowhere:port").returncode, 2)
        missing = generate(self.ours, *QUICK, "--path", "/not/there")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("NOENT", missing.stderr)
        nobody = generate(f"127.0.0.1:{free_port()}", *QUICK)
        self.assertEqual(nobody.returncode, 1)
        self.assertIn("connect", nobody.stderr)

    @unittest.skipIf(ganesha.PROGRAM is None, ganesha.WHY_NOT)
    def test_beside_ganesha_layouts_are_skipped_and_named(self):
        other = ganesha.Ganesha(BIN)
        self.addCleanup(other.close)
        other.start()
        lines, report = self.lines(self.ours, f"ganesha=127.0.0.1:{other.nfs_port}", *QUICK)
        for (row, _, _), servers in lines.items():
            self.assert_sound(servers, "ours")
            if row != "layoutget":
                self.assert_sound(servers, "ganesha")
        self.assertEqual([(one["row"], one["server"]) for one in report["skipped"]], [("layoutget", "ganesha")])
        self.assertEqual(list(other.path.iterdir()), [])


if __name__ == "__main__":
    require_mounts()
    unittest.main()
