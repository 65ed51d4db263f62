#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two MDSs share a log in etcd: when the one that serves is lost, the other serves with all that was acknowledged.

usage: takeover_test.py BIN_DIRECTORY
"""
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from cluster import START_SECONDS, Cluster, Mount, OpenFile, require_mounts, wait_until
from etcd import Etcd, require_etcd
from pair import Pair
from ports import free_port

BIN = sys.argv.pop(1)
FENCED = 3
TAKEOVER_SECONDS = 30  # 5.25 s, and what sanitizers and a busy machine add


class MountOfBoth(Mount):
    server = "127.0.0.1,127.0.0.2"


class Names:
    """Makes files, one after the other, and keeps the names of those that were acknowledged."""

    def __init__(self, directory):
        self.directory, self.made, self.stopping, self.error = directory, [], False, None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            number = 0
            while not self.stopping:
                number += 1
                name = f"n{number}"
                os.close(os.open(os.path.join(self.directory, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                self.made.append(name)
        except OSError as error:
            self.error = error

    def stop(self):
        self.stopping = True
        self.thread.join(120)


class Takeover(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        require_mounts()
        require_etcd()

    def setUp(self):
        self.etcd = Etcd()
        self.addCleanup(self.etcd.close)
        self.cluster = Pair(BIN, self.etcd)
        self.addCleanup(self.cluster.close)
        self.cluster.start_all()

    def kill_under_a_writer(self, lost, takes_over, mount):
        directory = mount / f"of-{lost}-{time.monotonic_ns()}"
        directory.mkdir()
        writer = Names(directory)
        wait_until(lambda: len(writer.made) > 50, 60, "names are made")
        before = len(writer.made)
        self.cluster.kill(lost)
        begun = time.monotonic()
        leads = self.cluster.log(takes_over).count("mds: ready ")
        self.cluster.move_address(takes_over)
        wait_until(lambda: self.cluster.log(takes_over).count("mds: ready ") > leads, TAKEOVER_SECONDS, "it serves")
        print(f"served again after {time.monotonic() - begun:.1f} s")
        wait_until(lambda: len(writer.made) > before + 50 or writer.error, 60, "names are made again")
        writer.stop()
        self.assertIsNone(writer.error)
        self.assertEqual(sorted(os.listdir(directory)), sorted(writer.made))
        return directory, writer.made

    def test_the_standby_serves_with_all_that_was_acknowledged(self):
        mount = self.cluster.mount()
        held = OpenFile(mount / "held")
        held.write(b"before")
        held.fsync()
        held.call(fcntl.flock, held.descriptor, fcntl.LOCK_EX)
        first, made = self.kill_under_a_writer("mds", "mds2", mount)
        # The open file, its lock and its layout are there without a grace period.
        self.assertNotIn("grace-began", self.cluster.log("mds2"))
        held.write(b"behind")
        held.fsync()
        self.assertEqual(held.read(6), b"behind")
        other = self.cluster.mount(name="other")
        with open(other / "held", "r+") as file, self.assertRaises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.assertEqual(sorted(os.listdir(other / first.name)), sorted(made))
        # And back: the one that was lost follows, and takes over in its turn.
        self.cluster.launch("mds")
        self.cluster.wait_for("mds", "standby", count=2)
        self.kill_under_a_writer("mds2", "mds", mount)
        self.assertEqual(sorted(os.listdir(other / first.name)), sorted(made))
        held.close()
        mount.unmount()
        other.unmount()
        self.cluster.stop("mds")
        checked = subprocess.run([self.cluster.program("mdsd"), "--config", str(self.cluster.home / "mds.json"), "--check"],
                                 capture_output=True, text=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def snapshots(self, socket, *arguments):
        return subprocess.run([str(self.cluster.bin / "pnfsrdma"), "--socket", str(self.cluster.home / socket), "snapshot",
                               *arguments], capture_output=True, text=True, timeout=60, check=True).stdout

    def test_snapshots_are_there_on_the_standby_too(self):
        mount = self.cluster.mount()
        (mount / "file").write_text("before")
        for name in ("first", "second"):
            self.snapshots("console.sock", "create", name)
        (mount / "file").write_text("behind")
        self.snapshots("console.sock", "remove", "second", "--yes")
        self.cluster.kill("mds")
        self.cluster.move_address("mds2")
        self.cluster.wait_for("mds2", "ready", seconds=TAKEOVER_SECONDS)
        self.assertEqual((mount / "file").read_text(), "behind")
        self.assertEqual((mount / ".snapshots" / "first" / "file").read_text(), "before")
        self.assertNotIn("second", self.snapshots("console2.sock", "list"))
        self.snapshots("console2.sock", "create", "third")
        mount.unmount()

    def test_a_stopped_mds_that_goes_on_acknowledges_nothing(self):
        stale = Cluster.mount(self.cluster, name="stale", proto="tcp", port=self.cluster.ports["mds"])
        (stale / "before").touch()
        self.cluster.signal("mds", signal.SIGSTOP)
        # Sent to the one that sleeps, and waiting there when it wakes up.
        answers = []

        def ask():
            try:
                os.close(os.open(stale / "never", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                answers.append("made")
            except OSError as error:
                answers.append(error)
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        self.cluster.wait_for("mds2", "ready", seconds=TAKEOVER_SECONDS)
        self.cluster.move_address("mds2")
        fresh = self.cluster.mount(name="fresh")
        (fresh / "behind").touch()
        self.cluster.signal("mds", signal.SIGCONT)
        self.assertEqual(self.cluster.processes["mds"].wait(timeout=30), FENCED)
        self.assertIn("lead-lost", self.cluster.log("mds"))
        self.assertEqual(answers, [])
        self.assertEqual(sorted(os.listdir(fresh.path)), ["before", "behind"])
        fresh.unmount()
        stale.kill()
        thread.join(30)

    def test_a_mount_of_both_hosts_goes_on_without_an_error(self):
        mount = MountOfBoth(self.cluster, "both", "", self.cluster.nfs_port)
        self.cluster.mounts.append(mount)
        writer = Names(mount.path)
        wait_until(lambda: len(writer.made) > 50, 60, "names are made")
        # Takes connections and says nothing; then it wakes up, with calls that wait there.
        self.cluster.signal("mds", signal.SIGSTOP)
        begun, before = time.monotonic(), len(writer.made)
        wait_until(lambda: len(writer.made) > before + 50 or writer.error, TAKEOVER_SECONDS, "names are made again")
        print(f"names are made again after {time.monotonic() - begun:.1f} s")
        self.cluster.signal("mds", signal.SIGCONT)
        self.assertEqual(self.cluster.processes["mds"].wait(timeout=30), FENCED)
        writer.stop()
        self.assertIsNone(writer.error)
        self.assertEqual(sorted(os.listdir(mount.path)), sorted(writer.made))
        mount.unmount()

    def test_an_idle_mount_of_both_hosts_keeps_its_lock(self):
        """No program asks for anything while the host says nothing any more; the lease goes on at the other one."""
        mount = MountOfBoth(self.cluster, "both", "", self.cluster.nfs_port)
        self.cluster.mounts.append(mount)
        held = OpenFile(mount.path / "held")
        held.call(fcntl.lockf, held.descriptor, fcntl.LOCK_EX)
        mount.wait_until_quiet()
        self.cluster.signal("mds", signal.SIGSTOP)
        wait_until(lambda: self.cluster.log("both").rfind(" host=127.0.0.2") > 0, TAKEOVER_SECONDS,
                   "the mount is at the other host")
        self.assertIn("server-not-responding", self.cluster.log("both"))
        self.cluster.move_address("mds2")
        other = OpenFile(self.cluster.mount() / "held")
        with self.assertRaises(BlockingIOError):
            other.call(fcntl.lockf, other.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held.write(b"still its own")
        held.fsync()
        for file in (held, other):
            file.close()
        self.cluster.signal("mds", signal.SIGCONT)
        self.assertEqual(self.cluster.processes["mds"].wait(timeout=30), FENCED)
        mount.unmount()

    def test_one_member_of_etcd_may_be_lost(self):
        mount = self.cluster.mount()
        writer = Names(mount.path)
        wait_until(lambda: len(writer.made) > 20, 60, "names are made")
        self.etcd.kill("m1")
        before = len(writer.made)
        wait_until(lambda: len(writer.made) > before + 50, 60, "names are made without a member")
        writer.stop()
        self.assertIsNone(writer.error)
        self.assertIsNone(self.cluster.processes["mds"].poll())
        mount.unmount()

    def test_who_is_cut_off_from_etcd_alone_ends_and_the_other_serves(self):
        mount = self.cluster.mount()
        writer = Names(mount.path)
        wait_until(lambda: len(writer.made) > 50, 60, "names are made")
        for way in self.cluster.ways:
            way.target_port = free_port()  # nobody listens there
            way.cut()
        # Clients still reach it, and are not answered.
        self.cluster.wait_for("mds2", "ready", seconds=TAKEOVER_SECONDS)
        self.assertEqual(self.cluster.processes["mds"].wait(timeout=30), FENCED)
        log = self.cluster.log("mds")
        self.assertIn("mds: lead-lost ", log)
        self.assertNotIn("mds: log-failed ", log)
        before = len(writer.made)
        self.cluster.move_address("mds2")
        wait_until(lambda: len(writer.made) > before + 50 or writer.error, 60, "names are made again")
        writer.stop()
        self.assertIsNone(writer.error)
        self.assertEqual(sorted(os.listdir(mount.path)), sorted(writer.made))
        mount.unmount()

    def test_nobody_serves_without_a_quorum_and_one_does_when_it_is_back(self):
        mount = self.cluster.mount()
        (mount / "before").touch()
        for name in ("m1", "m2"):
            self.etcd.kill(name)
        self.assertEqual(self.cluster.processes["mds"].wait(timeout=30), FENCED)
        self.cluster.launch("mds")
        self.cluster.wait_for("mds2", "etcd-does-not-answer", seconds=30)
        time.sleep(8)  # more than it takes over in
        self.assertNotIn("mds: leading ", self.cluster.log("mds2"))
        self.assertEqual(self.cluster.log("mds").count("mds: leading "), 1)
        for name in ("m1", "m2"):
            self.etcd.start(name)

        def serving():
            return [name for name in ("mds", "mds2") if self.cluster.log(name).count("mds: ready ") > (name == "mds")]
        wait_until(serving, 60, "one of them serves")
        self.assertEqual(len(serving()), 1)
        self.cluster.move_address(serving()[0])
        self.assertEqual(os.listdir(mount.path), ["before"])
        mount.unmount()

    def test_a_standby_says_what_it_does(self):
        self.cluster.stop("mds2")
        path = str(self.cluster.home / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as service_manager:
            service_manager.bind(path)
            service_manager.settimeout(START_SECONDS)
            self.cluster.launch("mds2", NOTIFY_SOCKET=path)

            def said(text):
                while text not in service_manager.recv(4096).decode():
                    pass
            said("STATUS=standby: follows mds, has the log up to ")
            self.cluster.stop("mds")
            said("STATUS=leads the metadata's log")

    def test_a_certificate_that_is_missing_is_told_at_once(self):
        self.cluster.stop("mds2")
        config = json.loads((self.cluster.home / "mds2.json").read_text())
        config["metadata_log"] |= {"ca_file": "/missing", "endpoints": ["https://192.0.2.1:2379"]}
        self.cluster.write_config("mds2", config)
        self.cluster.launch("mds2")
        self.assertEqual(self.cluster.processes["mds2"].wait(timeout=30), 1)
        self.assertIn("metadata_log.ca_file /missing has no certificates", self.cluster.log("mds2"))

    def test_an_ordered_end_is_taken_over_at_once(self):
        begun = time.monotonic()
        self.cluster.stop("mds")
        self.cluster.wait_for("mds2", "leading", seconds=TAKEOVER_SECONDS)
        self.assertLess(time.monotonic() - begun, 4)

    def test_a_store_of_the_log_is_not_served_without_it(self):
        self.cluster.stop("mds2")
        config = json.loads((self.cluster.home / "mds2.json").read_text())
        self.cluster.write_config("alone", config | {"metadata_log": {}})
        command = [self.cluster.program("mdsd"), "--config", str(self.cluster.home / "alone.json")]
        refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--leave-log", refused.stderr)
        left = subprocess.run([*command, "--leave-log"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(left.returncode, 0, left.stderr)
        self.assertIn("etcd was not asked", left.stdout)
        # It has a log no more, and so may not go on with that one.
        self.cluster.launch("mds2")
        self.assertEqual(self.cluster.processes["mds2"].wait(timeout=30), 1)
        self.assertIn("copy its metadata", self.cluster.log("mds2"))

    def test_a_store_that_leaves_its_log_says_who_goes_on_with_it(self):
        def leave(name):
            return subprocess.run([self.cluster.program("mdsd"), "--config", str(self.cluster.home / f"{name}.json"),
                                   "--leave-log"], capture_output=True, text=True, timeout=60, check=True).stdout
        self.cluster.stop("mds2")
        said = leave("mds2")
        self.assertIn("mds goes on with the log", said)
        self.assertIn("belongs to no log any more", said)
        self.assertIn("belonged to no log", leave("mds2"))
        self.cluster.stop("mds")
        self.assertIn("etcd still has the log under", leave("mds"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
