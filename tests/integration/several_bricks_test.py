#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several bricks under one mount: files spread, and one that goes away takes only its own files along.

usage: several_bricks_test.py BIN_DIRECTORY
"""
import concurrent.futures
import errno
import mmap
import os
import signal
import sys
import time
import unittest

from cluster import Cluster, wait_until
from console_client import Console

BIN = sys.argv.pop(1)
MIB = 1 << 20
FILES = 16
PATIENCE = 4  # seconds: brick_patience_seconds
# From the loss of a brick to the error: found silent, patience, and one retry of a busy machine.
DEADLINE = PATIENCE + 15


def read_file(path):
    """Bytes, past every cache of ours, or an errno."""
    try:
        with open(path, "rb", buffering=0) as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return f.read(8 * MIB)
    except OSError as error:
        return error.errno


def read_first_page(path):
    """How many bytes came, past the page cache and its locks, or an errno."""
    page = mmap.mmap(-1, 4096)
    try:
        f = os.open(path, os.O_RDONLY | os.O_DIRECT)
        try:
            return os.preadv(f, [page], 0)
        finally:
            os.close(f)
    except OSError as error:
        return -error.errno


def overwrite(path, data):
    try:
        with open(path, "r+b", buffering=0) as f:
            f.write(data)
            os.fsync(f.fileno())
        return 0
    except OSError as error:
        return error.errno


class SeveralBricks(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(BIN, pool_size="256M", lease_seconds=10, bricks=2,
                               brick_patience_seconds=PATIENCE).start_all()
        self.mount = self.cluster.mount("actimeo=0")
        self.pool = concurrent.futures.ProcessPoolExecutor(4)
        self.data = {}
        for i in range(FILES):
            self.write_new(f"file{i}")

    def tearDown(self):
        for name in self.cluster.bricks:
            if name in self.cluster.processes:
                self.cluster.signal(name, signal.SIGCONT)
        self.cluster.close()
        self.pool.shutdown(cancel_futures=True)

    def write_new(self, name):
        self.data[name] = os.urandom(MIB + 123)
        with open(self.mount / name, "wb", buffering=0) as f:
            f.write(self.data[name])
            os.fsync(f.fileno())

    def read(self, name):
        return self.pool.submit(read_file, self.mount / name)

    def drop_caches(self):
        with open("/proc/sys/vm/drop_caches", "w") as f:
            f.write("3")

    def files_by_brick(self):
        """Those whose first page is on the first brick, and those of brick2."""
        console = Console(self.cluster.home / "console.sock")
        second = {brick["id"] for brick in console.items("/bricks") if "brick2" in brick["address"]}
        place = {name: console.get(f"/files?path=/{name}").json["extents"][0]["brick"] for name in sorted(self.data)}
        return ([name for name in place if place[name] not in second], [name for name in place if place[name] in second])

    def files_that_fail(self, names):
        """Of the files those that answer an error, within the deadline; the others have their bytes."""
        self.drop_caches()
        begin = time.monotonic()
        answers = {name: self.read(name) for name in names}
        failed = set()
        for name, answer in answers.items():
            result = answer.result(timeout=DEADLINE * 4)
            if isinstance(result, bytes):
                self.assertEqual(result, self.data[name], name)
            else:
                self.assertIn(result, (errno.EIO, errno.ETIMEDOUT), f"{name}: {os.strerror(result)}")
                failed.add(name)
        self.assertLess(time.monotonic() - begin, DEADLINE * 4)
        return failed

    def all_come_back(self):
        def back():
            return all(self.read(name).result(timeout=60) == data for name, data in self.data.items())
        wait_until(back, 60, "all files have their bytes again")
        self.drop_caches()
        self.assertTrue(back(), "also when the kernel knows nothing of them")

    def test_one_that_is_killed_takes_only_its_own_files_along(self):
        self.cluster.kill("brick2")
        begin = time.monotonic()
        lost = self.files_that_fail(self.data)
        print(f"killed: {len(lost)} of {FILES} files answered an error, all within {time.monotonic() - begin:.1f} s")
        self.assertTrue(0 < len(lost) < FILES, lost)
        self.work_goes_on(set(self.data) - lost, lost)
        self.cluster.start_brick("brick2")
        self.all_come_back()
        self.mount.unmount()
        self.both_are_sound()

    def test_one_that_is_stopped_likewise(self):
        self.cluster.signal("brick2", signal.SIGSTOP)
        begin = time.monotonic()
        lost = self.files_that_fail(self.data)
        print(f"stopped: {len(lost)} of {FILES} files answered an error, all within {time.monotonic() - begin:.1f} s")
        self.assertTrue(0 < len(lost) < FILES, lost)
        self.work_goes_on(set(self.data) - lost, lost)
        self.cluster.signal("brick2", signal.SIGCONT)
        self.all_come_back()
        self.mount.unmount()
        self.both_are_sound()

    def test_a_silent_one_leaves_workers_for_the_files_of_the_other(self):
        # More readers of each brick's files than the mount has workers (16); of the silent one's no more than it may have
        # beside those that wait (three times as many).
        readers = 24
        there, silenced = self.files_by_brick()
        self.cluster.signal("brick2", signal.SIGSTOP)
        with concurrent.futures.ThreadPoolExecutor(2 * readers) as pool:
            names = [files[i % len(files)] for i in range(readers) for files in (silenced, there)]
            reads = {pool.submit(read_first_page, self.mount / name): name for name in names}
            order = [(reads[read], read.result()) for read in concurrent.futures.as_completed(reads, DEADLINE * 8)]
        outcomes = [count for _, count in order]
        well = [i for i, count in enumerate(outcomes) if count == 4096]
        silent = [i for i, count in enumerate(outcomes) if count != 4096]
        print(f"{len(well)} reads of the other brick's files, {len(silent)} of the silent one's: "
              f"{sum(i < min(silent) for i in well)} of the former were answered before any of the latter")
        self.assertEqual((len(well), len(silent)), (readers, readers))
        self.assertLess(max(well), min(silent))
        self.cluster.signal("brick2", signal.SIGCONT)
        self.all_come_back()

    def work_goes_on(self, there, lost):
        """Files of the other brick, names, and new files: at once."""
        begin = time.monotonic()
        for name in sorted(there)[:3]:
            self.data[name] = os.urandom(MIB + 123)
            self.assertEqual(self.pool.submit(overwrite, self.mount / name, self.data[name]).result(timeout=30), 0)
        self.write_new("written-meanwhile")
        os.mkdir(self.mount / "directory")
        moved, removed = sorted(lost)[:2]
        os.rename(self.mount / moved, self.mount / "directory" / "moved")
        self.data["directory/moved"] = self.data.pop(moved)
        os.unlink(self.mount / removed)
        del self.data[removed]
        self.assertEqual(len(os.listdir(self.mount.path)), FILES)
        took = time.monotonic() - begin
        print(f"meanwhile: 3 overwrites, a new file, mkdir, rename, unlink took {took:.2f} s")
        self.assertLess(took, 10)

    def both_are_sound(self):
        for name in ("mds", *self.cluster.bricks):
            self.cluster.stop(name)
        for name in self.cluster.bricks:
            result = self.cluster.run("brickd", "--config", str(self.cluster.home / f"{name}.json"), "--check")
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for name in self.cluster.bricks:
            self.cluster.start_brick(name)
        result = self.cluster.run("mdsd", "--config", str(self.cluster.home / "mds.json"), "--check", check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertNotIn("does not answer", result.stdout)
        self.assertEqual(self.cluster.sanitizer_reports(), [])

    def test_a_mount_can_be_left_while_one_is_away(self):
        self.cluster.kill("brick2")
        self.files_that_fail(self.data)
        self.mount.unmount()

    def test_the_wrong_brick_at_an_address_is_left_alone(self):
        self.cluster.stop("brick2")
        kept = self.cluster.pool_directory / "pool2.kept"
        pool = self.cluster.pool_directory / "pool2.img"
        pool.rename(kept)
        self.cluster.format_brick("brick2")
        before = len(self.cluster.log("brick2"))
        self.cluster.start_brick("brick2")
        wait_until(lambda: "brick-foreign" in self.cluster.log("mds"), 20, "the MDS sees that it is another brick")
        checks = Console(self.cluster.home / "console.sock").get("/health").json["checks"]
        foreign = next(check for check in checks if "foreign" in check["detail"])
        self.assertIn("Do not format it before you know whose data it has.", foreign["fix"])
        self.assertNotIn("claimed", self.cluster.log("brick2")[before:])
        self.cluster.stop("brick2")
        pool.unlink()
        kept.rename(pool)
        self.cluster.start_brick("brick2")
        self.all_come_back()


class WhileABrickIsAway(unittest.TestCase):
    def test_the_file_system_is_not_full(self):
        with Cluster(BIN, pool_size="256M") as cluster:
            cluster.start_all()
            mount = cluster.mount("actimeo=0")
            (mount / "file").write_bytes(os.urandom(MIB))
            before = os.statvfs(mount.path)
            self.assertGreater(before.f_bavail, 0)
            cluster.kill("brick")
            console = Console(cluster.home / "console.sock")
            wait_until(lambda: console.items("/bricks")[0]["state"] == "away", 20, "it is seen to be away")
            away = console.items("/bricks")[0]
            self.assertIsNotNone(away["format_refusal"])
            now = os.statvfs(mount.path)
            self.assertEqual(now.f_blocks, before.f_blocks)
            self.assertGreater(now.f_bavail, before.f_bavail // 2)
            cluster.start_brick()


class ABrickAddedAtRunTime(unittest.TestCase):
    """By the API, under a mount that works: no restart, no error."""

    def test_it_takes_files_keeps_them_over_a_restart_and_goes_when_it_is_empty(self):
        with Cluster(BIN, pool_size="64M") as cluster:
            cluster.start_all()
            console = Console(cluster.home / "console.sock")
            mount = cluster.mount()
            data = {"old": os.urandom(40 * MIB)}
            (mount / "old").write_bytes(data["old"])
            with self.assertRaises(OSError) as full:
                (mount / "new").write_bytes(bytes(40 * MIB))
            self.assertEqual(full.exception.errno, errno.ENOSPC)
            os.unlink(mount / "new")

            first = console.items("/bricks")[0]["id"]
            address = cluster.brick_address(cluster.configure_brick(2))
            refused = console.request("POST", "/bricks", {"address": address})
            self.assertEqual((refused.status, refused.problem), (422, "brick-unreachable"))
            self.assertEqual(len(console.items("/bricks")), 1)
            cluster.bricks.append("brick2")
            cluster.format_brick("brick2")
            cluster.start_brick("brick2")
            # It went through the MDS and is not committed: a brick that joins says nothing about it.
            small = os.open(mount / "small", os.O_WRONLY | os.O_CREAT)
            os.write(small, b"x" * 100)
            begin = time.monotonic()
            added = console.request("POST", "/bricks", {"address": address})
            print(f"added in {time.monotonic() - begin:.2f} s")
            self.assertEqual((added.status, added.json["state"]), (201, "ready"), added.text)
            os.fsync(small)
            os.close(small)
            os.unlink(mount / "small")
            second = added.json["id"]
            self.assertEqual(console.request("POST", "/bricks", {"address": address}).status, 409)

            data["new"] = os.urandom(40 * MIB)
            (mount / "new").write_bytes(data["new"])
            bricks = {extent["brick"] for extent in console.get("/files?path=/new").json["extents"]}
            self.assertIn(second, bricks)
            self.assertEqual(console.request("DELETE", f"/bricks/{second}").problem, "brick-in-use")
            # The list is the store's now: a start has both, though the configuration names one.
            cluster.stop("mds")
            cluster.start_mds()
            wait_until(lambda: [b["state"] for b in console.items("/bricks")] == ["ready", "ready"], 20, "both are ready")
            for name, bytes_of_it in data.items():
                self.assertEqual((mount / name).read_bytes(), bytes_of_it)

            os.unlink(mount / "new")
            wait_until(lambda: console.request("DELETE", f"/bricks/{second}").status == 204, 60, "it is empty and goes")
            self.assertEqual([brick["id"] for brick in console.items("/bricks")], [first])
            self.assertEqual((mount / "old").read_bytes(), data["old"])
            mount.unmount()


class AFileOnTwoBricks(unittest.TestCase):
    """Larger than one brick: its layout names two devices."""

    def test_it_is_written_read_and_freed(self):
        with Cluster(BIN, pool_size="64M", bricks=2) as cluster:
            cluster.start_all()
            mount, other = cluster.mount("flush_after=0"), cluster.mount()
            data = os.urandom(MIB) * 90
            with open(mount / "large", "wb", buffering=0) as f:
                for at in range(0, len(data), MIB):
                    self.assertEqual(f.write(data[at:at + MIB]), MIB)
                os.fsync(f.fileno())
            self.assertEqual((other / "large").read_bytes(), data)
            self.assertEqual((mount / "large").read_bytes(), data)
            direct = mount.statistics()["rdma_write_bytes"]
            print(f"90 MiB over two bricks of 64 MiB: {direct >> 20} MiB of them by RDMA")
            self.assertGreater(direct, 65 * MIB)
            with open(mount / "large", "rb+", buffering=0) as f:
                for at in (0, 89 * MIB):  # one on each brick
                    os.pwrite(f.fileno(), data[at:at + 4096], at)
                before = mount.statistics()["rdma_round_trips"]
                os.fdatasync(f.fileno())
                self.assertEqual(mount.statistics()["rdma_round_trips"] - before, 1, "both are asked at once")
            with self.assertRaises(OSError) as full:
                (mount / "more").write_bytes(bytes(60 * MIB))
            self.assertEqual(full.exception.errno, errno.ENOSPC)
            os.unlink(mount / "more")
            os.unlink(mount / "large")

            def room():
                try:
                    (mount / "again").write_bytes(data)
                    return True
                except OSError:
                    time.sleep(0.5)  # blocks rest, and are zeroed
                    return False
            wait_until(room, 60, "the space of both is there again")
            self.assertEqual((other / "again").read_bytes(), data)
            self.assertEqual(cluster.sanitizer_reports(), [])


if __name__ == "__main__":
    unittest.main()
