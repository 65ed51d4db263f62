#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a mount tells of itself: `pnfsrdma stat`, and Prometheus.

usage: stat_test.py BIN_DIRECTORY
"""
import json
import os
import shutil
import socket
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

from cluster import Cluster, free_port, wait_until

BIN = sys.argv.pop(1)
MIB = 1 << 20


def cli(*arguments):
    return subprocess.run([f"{BIN}/pnfsrdma", *map(str, arguments)], capture_output=True, text=True, timeout=60)


def scrape_unix(path):
    """GET /metrics over a Unix socket: the head and the text."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20)
        s.connect(str(path))
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: mount\r\nConnection: close\r\n\r\n")
        answer = b""
        while part := s.recv(65536):
            answer += part
    head, text = answer.split(b"\r\n\r\n", 1)
    return head.decode(), text.decode()


def value(metrics, name, **labels):
    """One sample of Prometheus text."""
    for line in metrics.splitlines():
        found, _, number = line.rpartition(" ")
        if found.split("{")[0] == name and all(f'{k}="{v}"' in found for k, v in labels.items()):
            return float(number)
    raise KeyError(f"{name} {labels}")


class Stat(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="256M").start_all()
        cls.socket = cls.cluster.home / "metrics.sock"
        cls.mount = cls.cluster.mount(f"metrics=unix:{cls.socket}")
        # Stays open: behind the last close the MDS takes back the space ahead of the file, and the layout with it.
        cls.file = os.open(cls.mount / "file", os.O_RDWR | os.O_CREAT)
        assert os.pwrite(cls.file, b"x" * MIB, 0) == MIB
        os.fsync(cls.file)
        os.posix_fadvise(cls.file, 0, 0, os.POSIX_FADV_DONTNEED)
        assert len(os.pread(cls.file, MIB, 0)) == MIB

    @classmethod
    def tearDownClass(cls):
        os.close(cls.file)
        cls.mount.unmount()
        assert not os.path.exists(cls.socket), "the metrics socket stays behind"
        cls.cluster.close()

    def status(self, *arguments):
        shown = cli("stat", "--json", *arguments)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        return json.loads(shown.stdout)

    def test_status_is_what_is_in_use_and_why(self):
        (status,) = self.status(self.mount.path)
        self.assertEqual(status["mounted_on"], str(self.mount.path))
        self.assertEqual(status["durability"], "volatile")  # a pool on tmpfs
        self.assertEqual(status["server"]["address"], f"127.0.0.1:{self.cluster.nfs_port}")
        self.assertEqual(status["server"]["host"], "127.0.0.1")
        self.assertEqual(status["server"]["minor_version"], 2)
        self.assertIn("iwarp", status["transports"])
        (device,) = status["devices"]
        self.assertTrue(device["connected"])
        self.assertEqual(device["transport"], "iwarp")
        self.assertEqual(device["flush_method"], "native")
        self.assertEqual(device["offered"], [f"tcp 127.0.0.1:{self.cluster.data_port}"])
        self.assertTrue(device["choice"])
        self.assertGreaterEqual(status["layouts"]["files"], 1)
        self.assertGreaterEqual(status["statistics"]["rdma_write_bytes"], MIB)
        self.assertGreaterEqual(status["latency"]["write"]["count"], 1)
        self.assertGreater(status["latency"]["mds_call"]["nanoseconds"], 0)

    def test_it_costs_no_call_to_the_mds(self):
        mount = self.cluster.mount("flush_after=0", name="quiet")  # nothing flushes beside it
        before = mount.wait_until_quiet()["mds_calls"]
        for _ in range(5):
            cli("stat", mount.path)
        self.assertEqual(mount.statistics()["mds_calls"], before)
        mount.unmount()

    def test_a_path_in_the_mount_and_no_path_at_all_will_do(self):
        (self.mount / "folder").mkdir(exist_ok=True)
        (inside,) = self.status(self.mount / "folder")
        self.assertEqual(inside["mounted_on"], str(self.mount.path))
        # Other mounts of this machine may be older and not tell theirs: they must not hide this one.
        self.assertIn(str(self.mount.path), [status["mounted_on"] for status in json.loads(cli("stat", "--json").stdout)])

    def test_closed_and_removed_files_leave_nothing_behind(self):
        """A closed file is its name and attributes; a removed one nothing."""
        def files():
            return self.status(self.mount.path)[0]["files"]
        before = files()
        many = self.mount / "many"
        many.mkdir()
        for number in range(500):
            (many / f"{number}").write_bytes(b"little")
        self.assertGreaterEqual(files()["known_to_kernel"], before["known_to_kernel"] + 500)
        # What is not flushed is remembered until flush_after, twice at most.
        wait_until(lambda: files()["with_data_state"] <= before["with_data_state"], 30, "closed files have no data state")
        shutil.rmtree(many)
        wait_until(lambda: files()["known_to_kernel"] <= before["known_to_kernel"], 30, "removed files are forgotten")

    def test_people_get_tables(self):
        shown = cli("stat", self.mount.path)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        for words in ("iwarp", "volatile", "BY RDMA", "MDS CALLS", "native"):
            self.assertIn(words, shown.stdout)
        self.assertNotIn("\033", shown.stdout)

    def test_watching_shows_rates(self):
        command = subprocess.Popen([f"{BIN}/pnfsrdma", "stat", str(self.mount.path), "--watch", "--interval", "0.5", "--count", "3", "--json"],
                                   stdout=subprocess.PIPE, text=True)
        file = os.open(self.mount / "watched", os.O_RDWR | os.O_CREAT)
        while command.poll() is None:
            os.pwrite(file, b"y" * 65536, 0)
        os.close(file)
        lines = [json.loads(line) for line in command.stdout.read().splitlines()]
        command.stdout.close()
        self.assertEqual(command.returncode, 0)
        self.assertEqual(len(lines), 3)
        self.assertGreater(max(line["rates"]["write"]["operations_per_second"] for line in lines), 0)
        self.assertGreater(max(line["rates"]["write"]["bytes_per_second"] for line in lines), 0)

    def test_prometheus_sees_the_counters(self):
        head, text = scrape_unix(self.socket)
        self.assertIn("200 OK", head)
        self.assertIn("text/plain; version=0.0.4", head)
        counted = self.mount.statistics()
        self.assertEqual(value(text, "pnfsrdma_client_flushes_total", method="native"), counted["flushes_native"])
        self.assertGreaterEqual(value(text, "pnfsrdma_client_data_bytes_total", direction="write", path="rdma"), MIB)
        self.assertGreaterEqual(value(text, "pnfsrdma_client_latency_seconds_count", operation="write"), 1)
        self.assertEqual(value(text, "pnfsrdma_client_info"), 1)
        # The textfile collector gets the same families.
        shown = cli("stat", "--prometheus", self.mount.path)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        names = lambda lines: {line for line in lines.splitlines() if line.startswith("# TYPE")}
        self.assertEqual(names(shown.stdout), names(text))

    def test_buckets_are_cumulative_and_end_at_infinity(self):
        _, text = scrape_unix(self.socket)
        buckets = [line for line in text.splitlines()
                   if line.startswith("pnfsrdma_client_latency_seconds_bucket") and 'operation="write"' in line]
        counts = [float(line.split()[-1]) for line in buckets]
        self.assertEqual(counts, sorted(counts))
        self.assertIn('le="+Inf"', buckets[-1])
        self.assertEqual(counts[-1], value(text, "pnfsrdma_client_latency_seconds_count", operation="write"))

    def test_promtool_finds_nothing_to_mend(self):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed (package prometheus)")
        _, text = scrape_unix(self.socket)
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def test_exit_codes_tell_what_is_wrong(self):
        self.assertEqual(cli("stat", "/proc").returncode, 5)
        self.assertEqual(cli("stat", "/no/such/path").returncode, 5)
        self.assertEqual(cli("stat", "--nonsense").returncode, 2)
        self.assertEqual(cli().returncode, 2)
        self.assertEqual(cli("--version").returncode, 0)
        refused = cli("stat", "/proc", "--json")
        self.assertEqual(json.loads(refused.stderr)["exit_code"], 5)


class MetricsOption(unittest.TestCase):
    def test_over_tcp_and_only_metrics(self):
        with Cluster(BIN, pool_size="64M") as cluster:
            cluster.start_all()
            port = free_port()
            mount = cluster.mount(f"metrics=127.0.0.1:{port}")
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
                self.assertIn("pnfsrdma_client_info", answer.read().decode())
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20)
            self.assertEqual(refused.exception.code, 404)
            refused.exception.close()
            mount.unmount()

    def test_a_port_in_use_refuses_the_mount_and_says_which(self):
        with Cluster(BIN, pool_size="64M") as cluster:
            cluster.start_all()
            point = cluster.home / "refused"
            point.mkdir()
            refused = cluster.run("fuse", f"127.0.0.1:{cluster.nfs_port}:/", str(point), "-f", "-o",
                                  f"metrics=127.0.0.1:{cluster.nfs_port}", check=False)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(f"metrics=127.0.0.1:{cluster.nfs_port}: Address already in use", refused.stderr)
            self.assertFalse(os.path.ismount(point))

    def test_a_socket_left_behind_is_taken_over(self):
        with Cluster(BIN, pool_size="64M") as cluster:
            cluster.start_all()
            path = cluster.home / "metrics.sock"
            mount = cluster.mount(f"metrics={path}")
            mount.kill()
            self.assertEqual(cli("stat", mount.path).returncode, 5)
            self.assertTrue(path.exists())
            again = cluster.mount(f"metrics={path}")
            self.assertIn("200 OK", scrape_unix(path)[0])
            again.unmount()

    def test_a_mount_whose_process_is_gone_is_told_apart(self):
        with Cluster(BIN, pool_size="64M") as cluster:
            cluster.start_all()
            mount = cluster.mount()
            mount.process.kill()
            mount.process.wait()
            gone = cli("stat", mount.path)
            subprocess.run(["umount", "-l", str(mount.path)], check=True)
            self.assertEqual(gone.returncode, 3, gone.stderr)
            self.assertIn(f"umount -l {mount.path}", gone.stderr)


class Doctor(unittest.TestCase):
    def test_it_examines_this_host(self):
        with Cluster(BIN, pool_size="64M") as cluster:
            cluster.start_all()
            shown = cli("doctor", "--json", "--mds", f"127.0.0.1:{cluster.nfs_port}")
            self.assertIn(shown.returncode, (0, 1), shown.stderr)
            report = json.loads(shown.stdout)
            subjects = {finding["subject"]: finding for finding in report["findings"]}
            self.assertEqual(shown.returncode, 1 if report["problems"] else 0)
            self.assertEqual(subjects["server"]["verdict"], "ok")
            self.assertEqual(subjects["/dev/fuse"]["verdict"], "ok")
            for finding in report["findings"]:
                self.assertEqual(finding["verdict"] == "ok", finding["fix"] == "", finding)
            nobody = cli("doctor", "--json", "--mds", f"127.0.0.1:{free_port()}")
            self.assertEqual(nobody.returncode, 1)


if __name__ == "__main__":
    unittest.main()
