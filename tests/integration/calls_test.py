#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What common operations cost in calls to the MDS: COMPOUNDs, as the client counts them (shared/initiator/README.md has
the table). A change that makes one dearer has to say so here.

usage: calls_test.py BIN_DIRECTORY
"""
import mmap
import os
import subprocess
import sys
import time
import unittest

from cluster import Cluster

BIN = sys.argv.pop(1)
MIB = 1 << 20


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="2G").start_all()
        cls.mount = cls.cluster.mount("actimeo=3600,flush_after=0")  # no COMMITs beside what is counted
        (cls.mount / "directory").mkdir()
        (cls.mount / "directory" / "first").write_bytes(bytes(MIB))  # the brick is connected from here on
        cls.path = cls.mount / "directory" / "file"

    @classmethod
    def tearDownClass(cls):
        cls.mount.unmount()
        cls.cluster.close()

    def tearDown(self):
        if self.path.exists():
            self.path.unlink()

    def calls(self, work, mount=None):
        """By operation, PUTFH and the like left out; and all COMPOUNDs."""
        mount = mount or self.mount
        before = mount.wait_until_quiet()
        work()
        after = mount.wait_until_quiet()
        counts = {name: count - before["mds_operations"].get(name, 0)
                  for name, count in after["mds_operations"].items()
                  if count != before["mds_operations"].get(name, 0)
                  and name not in ("PUTFH", "SAVEFH", "RESTOREFH", "GETFH")}
        all_calls = after["mds_calls"] - before["mds_calls"]
        print(f"{self.id().rsplit('.', 1)[-1]}: {all_calls} calls {counts}")
        return all_calls, counts

    def create(self, size):
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        self.assertEqual(os.write(descriptor, bytes(size)), size)
        os.close(descriptor)

    def test_create_write_4_kib_close(self):
        calls, counts = self.calls(lambda: self.create(4096))
        self.assertEqual({k: counts.get(k) for k in ("LOOKUP", "OPEN", "WRITE", "CLOSE")},
                         {"LOOKUP": 1, "OPEN": 1, "WRITE": 1, "CLOSE": 1})
        self.assertLessEqual(calls, 4)

    def test_create_write_64_kib_close(self):
        calls, counts = self.calls(lambda: self.create(65536))
        self.assertEqual({k: counts.get(k) for k in ("LOOKUP", "OPEN", "LAYOUTGET", "LAYOUTCOMMIT", "CLOSE")},
                         {"LOOKUP": 1, "OPEN": 1, "LAYOUTGET": 1, "LAYOUTCOMMIT": 1, "CLOSE": 1})
        self.assertLessEqual(calls, 5)

    def test_many_new_files(self):
        """LOOKUP and OPEN each; the CLOSEs go sixteen to a call."""
        directory = self.mount / "new"
        directory.mkdir()

        def create():
            for number in range(320):
                os.close(os.open(directory / str(number), os.O_WRONLY | os.O_CREAT, 0o644))
        calls, counts = self.calls(create)
        self.assertEqual({k: counts.get(k) for k in ("LOOKUP", "OPEN", "CLOSE")},
                         {"LOOKUP": 320, "OPEN": 320, "CLOSE": 320})
        self.assertLessEqual(calls, 640 + 240)

    def test_opened_again_and_again(self):
        """A file that is opened again before its CLOSE was sent stays open at the server."""
        self.create(4096)

        def work():
            for _ in range(100):
                os.close(os.open(self.path, os.O_RDONLY))
        calls, counts = self.calls(work)
        self.assertEqual(counts["OPEN"], 100)
        self.assertLessEqual(counts["CLOSE"], 50)
        self.assertLessEqual(calls, 150)

    def test_growing_by_a_gibibyte(self):
        block = os.urandom(MIB)

        def grow():
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
            for _ in range(1024):
                os.write(descriptor, block)
            os.close(descriptor)
        calls, counts = self.calls(grow)
        # Doubled up to 64 MiB at a time, then 16 for the rest; a commit for every 32 MiB that are kept.
        self.assertLessEqual(counts["LAYOUTGET"], 26)
        self.assertLessEqual(counts["LAYOUTCOMMIT"], 36)
        self.assertNotIn("WRITE", counts)
        self.assertLessEqual(calls, 68)

    def test_open_and_close(self):
        """An open by name asks whether the name still leads there, in the same call."""
        self.create(4096)

        def work():
            os.close(os.open(self.path, os.O_RDONLY))
        for _ in range(2):
            calls, counts = self.calls(work)
            self.assertEqual({k: counts.get(k) for k in ("LOOKUP", "VERIFY", "OPEN", "CLOSE")},
                             {"LOOKUP": 1, "VERIFY": 1, "OPEN": 1, "CLOSE": 1})
            self.assertEqual(calls, 2)
            # A rename tells the new name: no second try.
            os.rename(self.path, self.mount / "directory" / "other")
            os.rename(self.mount / "directory" / "other", self.path)
            os.stat(self.path)

    def test_open_and_read_beside_new_files(self):
        """The layout comes with the OPEN, whatever else has happened in the file system."""
        self.create(MIB)
        for number in range(2):
            (self.mount / "directory" / f"beside-{number}").touch()

            def work():
                descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
                with mmap.mmap(-1, 4096) as page:
                    self.assertEqual(os.preadv(descriptor, [page], 0), 4096)
                os.close(descriptor)
            calls, counts = self.calls(work)
            self.assertEqual(calls, 2, counts)

    def test_utimes(self):
        self.create(4096)
        os.stat(self.path)
        calls, counts = self.calls(lambda: os.utime(self.path, (1, 2)))
        self.assertEqual(counts, {"SETATTR": 1, "GETATTR": 1})
        self.assertEqual(calls, 1)

    def test_stat_after_utimes_is_answered_from_what_came_with_it(self):
        self.create(4096)

        def work():
            os.utime(self.path, (1, 2))
            self.assertEqual(os.stat(self.path).st_mtime, 2)
        self.assertEqual(self.calls(work)[0], 1)

    def test_find_by_size_asks_for_no_file_by_itself(self):
        """READDIR brings what stat asks, in a directory of which this mount knows nothing as in one it has just seen."""
        files = 2000
        (self.mount / "many").mkdir()
        for number in range(files):
            (self.mount / "many" / f"file-{number:05}").touch()
        other = self.cluster.mount("flush_after=0", name="other")
        for what in ("unknown", "old"):
            found = []
            calls, counts = self.calls(lambda: found.extend(self.find_empty(other / "many")), other)
            self.assertEqual(len(found), files, what)
            self.assertLessEqual(counts.get("LOOKUP", 0), 2, what)
            self.assertLessEqual(counts.get("GETATTR", 0), 4, what)
            self.assertLessEqual(calls, 30, what)
            time.sleep(3.2)  # longer than acregmin
        other.unmount()

    @staticmethod
    def find_empty(directory):
        return subprocess.run(["find", str(directory), "-type", "f", "-size", "0"], check=True, capture_output=True,
                              text=True).stdout.split()

    def test_reading_the_statistics(self):
        """Costs nothing, however old the attributes of the root are."""
        mount = self.cluster.mount("acdirmin=1,acdirmax=1,flush_after=0", name="impatient")
        before = mount.statistics()
        for _ in range(3):
            time.sleep(1.2)
            after = mount.statistics()
        self.assertEqual(after["mds_calls"] - before["mds_calls"], 0, after["mds_operations"])
        mount.unmount()


if __name__ == "__main__":
    unittest.main()
