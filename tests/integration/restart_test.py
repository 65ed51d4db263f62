#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Daemons come and go under a mount: nothing that was synced is lost, and work goes on.

usage: restart_test.py BIN_DIRECTORY
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

from cluster import Cluster, Mount, OpenFile, wait_until

BIN = sys.argv.pop(1)
MIB = 1 << 20


class MountOfSeveralHosts(Mount):
    server = "127.0.0.1,127.0.0.2"


class Restart(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(BIN, pool_size="512M", lease_seconds=5).start_all()
        self.mount = self.cluster.mount()

    def tearDown(self):
        self.cluster.close()

    def work(self, name, size=3 * MIB):
        data = os.urandom(size)
        with open(self.mount / name, "wb", buffering=0) as f:
            f.write(data)
            os.fsync(f.fileno())
        return data

    def test_the_mds_is_restarted_while_a_file_is_open(self):
        f = OpenFile(self.mount / "open")
        f.write(b"before" * MIB)
        f.fsync()
        for end in (self.cluster.stop, self.cluster.kill):
            end("mds")
            self.cluster.start_mds()
            self.assertEqual(f.read(6), b"before")
            f.write(b"after!")
            f.fsync()
            self.assertEqual(f.read(12), b"after!before")
            f.write(b"before")
        f.close()
        self.mount.unmount()

    def test_the_mds_comes_back_at_another_of_its_addresses(self):
        mount = MountOfSeveralHosts(self.cluster, "several", "", self.cluster.nfs_port)
        self.cluster.mounts.append(mount)
        f = OpenFile(mount / "open")
        f.write(b"before" * MIB)
        f.fsync()
        config = json.loads((self.cluster.home / "mds.json").read_text())
        for host in ("127.0.0.2", "127.0.0.1"):
            self.cluster.kill("mds")
            self.cluster.write_config("mds", {**config, "listen": [f"{host}:{self.cluster.nfs_port}"]})
            self.cluster.start_mds(host)
            wait_until(lambda: re.findall("host-found .* host=(.*)", self.cluster.log("several"))[-1] == host, 30,
                       f"the mount found {host}")
            f.write(b"after!")
            f.fsync()
            self.assertEqual(f.read(12), b"after!before")
            f.write(b"before")
            f.fsync()
        f.close()
        self.assertIn("127.0.0.1,127.0.0.2:/", pathlib.Path("/proc/mounts").read_text().replace("\\054", ","))
        mount.unmount()
        self.mount.kill()

    def test_the_brick_is_restarted_while_a_file_is_open(self):
        f = OpenFile(self.mount / "open")
        f.write(b"before" * MIB)
        f.fsync()
        for end in (self.cluster.stop, self.cluster.kill):
            end("brick")
            self.cluster.start_brick()
            self.assertEqual(f.read(6), b"before")
            f.write(b"before")
            f.fsync()
        f.close()
        self.mount.unmount()

    def grown_and_not_synced(self, name, size):
        """A file with synced bytes at its front and growth behind them that no server has been told of."""
        data = os.urandom(size)
        f = OpenFile(self.mount / name)
        f.write(data[:100_000])
        f.fsync()
        f.write(data[100_000:], 100_000)
        return f, data

    def restart(self, daemons):
        for name in daemons:
            self.cluster.kill(name)
        for name in sorted(daemons):
            {"brick": self.cluster.start_brick, "mds": self.cluster.start_mds}[name]()

    def test_growth_that_was_not_synced_survives_a_restart_on_the_same_boot(self):
        other = self.cluster.mount(name="other")
        for daemons in (["mds"], ["brick"], ["mds", "brick"]):
            for way in ("fsync", "close"):
                with self.subTest(killed=daemons, ended_by=way):
                    name = f"{'-'.join(daemons)}-{way}"
                    f, data = self.grown_and_not_synced(name, 5 * MIB + 4321)
                    self.restart(daemons)
                    if way == "fsync":
                        f.fsync()  # no EIO
                        self.assertEqual((other / name).read_bytes(), data)
                    f.close()
                    self.assertEqual((other / name).read_bytes(), data)
        counts = self.mount.statistics()
        self.assertEqual(counts["lost_writes"], 0)
        self.assertGreater(counts["restored_bytes"], 0)
        other.unmount()
        self.mount.unmount()

    def test_a_small_file_that_was_not_synced_survives_a_restart(self):
        """It goes through the server, which does not know any more what of it was durable."""
        for daemons in (["mds"], ["brick"], ["mds", "brick"]):
            with self.subTest(killed=daemons):
                f = OpenFile(self.mount / f"small-{'-'.join(daemons)}")
                f.write(b"small" * 100)
                self.restart(daemons)
                f.fsync()  # no EIO
                self.assertEqual(f.read(500), b"small" * 100)
                f.close()
        self.assertEqual(self.mount.statistics()["lost_writes"], 0)
        self.mount.unmount()

    def test_revoked_layouts_are_freed_at_the_server(self):
        """It shows that it has revoked something, in each answer, until the client has freed it."""
        files = [self.grown_and_not_synced(f"file{i}", 2 * MIB)[0] for i in range(2)]
        self.restart(["brick"])
        for f in files:
            f.fsync()

        def operations(name):
            return self.mount.statistics()["mds_operations"].get(name, 0)
        wait_until(lambda: operations("FREE_STATEID") >= 2, 20, "the revoked layouts are freed")
        tests = operations("TEST_STATEID")
        time.sleep(3)  # while the server is not content, it is asked each second
        self.assertEqual(operations("TEST_STATEID"), tests)
        self.assertEqual(operations("FREE_STATEID"), 2)
        for f in files:
            f.close()
        self.mount.unmount()

    def test_growth_goes_on_over_a_restart(self):
        """What was written before, between and after is read and found, whoever looks."""
        f, data = self.grown_and_not_synced("file", 2 * MIB)
        for daemons in (["mds"], ["brick"], ["mds", "brick"]):
            self.restart(daemons)
            more = os.urandom(MIB + 77)
            f.write(more, len(data))
            data += more
            self.assertEqual(f.read(len(data)), data)
        f.fsync()
        f.close()
        self.mount.unmount()
        self.assertEqual((self.cluster.mount(name="again") / "file").read_bytes(), data)

    def test_everything_is_there_after_both_were_restarted(self):
        files = {f"file{i}": self.work(f"file{i}", size) for i, size in enumerate((1, 5000, 70_000, 9 * MIB))}
        self.mount.unmount()
        self.cluster.stop("mds")
        self.cluster.stop("brick")
        self.cluster.start_brick()
        self.cluster.start_mds()
        mount = self.cluster.mount(name="again")
        for name, data in files.items():
            self.assertEqual((mount / name).read_bytes(), data)
        mount.unmount()

    def test_an_mds_that_is_away_for_a_while_only_delays(self):
        self.cluster.stop("mds")
        writer = subprocess.Popen(["sh", "-c", f"echo waited > {self.mount / 'late'}"])
        time.sleep(2)
        self.assertIsNone(writer.poll(), "a hard mount waits")
        self.cluster.start_mds()
        self.assertEqual(writer.wait(timeout=60), 0)
        self.assertEqual((self.mount / "late").read_text(), "waited\n")

    def test_umount_ends_with_no_server_left(self):
        self.work("file")
        self.cluster.kill("mds")
        self.cluster.kill("brick")
        begin = time.monotonic()
        subprocess.run(["umount", "-f", str(self.mount.path)], timeout=60)
        self.mount.process.send_signal(signal.SIGTERM)
        self.mount.process.wait(timeout=60)
        self.assertLess(time.monotonic() - begin, 60)

    def test_a_signal_ends_a_mount_with_uncommitted_writes_and_no_server_left(self):
        f = OpenFile(self.mount / "file")
        f.write(bytes(3 * MIB))
        self.cluster.kill("mds")
        self.cluster.kill("brick")
        begin = time.monotonic()
        self.mount.process.send_signal(signal.SIGTERM)
        self.mount.process.wait(timeout=60)
        self.assertLess(time.monotonic() - begin, 40)
        with self.assertRaises(OSError):
            f.read(1)
        f.process.shutdown()

    def test_a_second_daemon_on_the_same_pool_or_directory_is_refused(self):
        again = self.cluster.run("brickd", "--config", str(self.cluster.home / "brick.json"), check=False)
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("pool.img", again.stderr + again.stdout)
        again = self.cluster.run("mdsd", "--config", str(self.cluster.home / "mds.json"), check=False)
        self.assertNotEqual(again.returncode, 0)

    def test_the_brick_check_finds_the_pool_sound(self):
        self.work("file")
        self.mount.unmount()
        self.cluster.stop("mds")
        self.cluster.stop("brick")
        result = self.cluster.run("brickd", "--config", str(self.cluster.home / "brick.json"), "--check")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
