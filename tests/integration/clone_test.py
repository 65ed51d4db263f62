#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that share memory: CLONE by copy_file_range(2), and writing to either of them afterwards.

usage: clone_test.py BIN_DIRECTORY [--rounds N]
"""
import mmap
import os
import random
import subprocess
import sys
import unittest

import cluster
from two_mounts import TwoMounts

BIN = sys.argv.pop(1)
ROUNDS = 400
if "--rounds" in sys.argv:
    at = sys.argv.index("--rounds")
    ROUNDS = int(sys.argv[at + 1])
    del sys.argv[at:at + 2]
KIB = 1 << 10
MIB = 1 << 20
PAGE = 4096


class Clone(TwoMounts):
    bin = BIN
    daemons = {"pool_size": "1G"}

    def operations(self, name):
        return self.mount.statistics()["mds_operations"].get(name, 0)

    def copy(self, source, target):
        subprocess.run(["cp", "--sparse=never", self.mount / source, self.mount / target], check=True)

    def used(self):
        space = os.statvfs(self.mount / ".")
        return (space.f_blocks - space.f_bfree) * space.f_frsize

    def test_cp_takes_no_memory_and_one_call(self):
        path, content = self.make("original", 150 * MIB + 4321)
        used, clones, copies = self.used(), self.operations("CLONE"), self.operations("COPY")
        self.copy("original", "copy")
        self.assertEqual(self.operations("CLONE") - clones, 1)
        self.assertEqual(self.operations("COPY") - copies, 0)
        self.assertLess(self.used() - used, MIB)
        for name in ("original", "copy"):
            self.assertTrue((self.other / name).read_bytes() == content)
        # The first write behind it copies a block, no more, and the original stays.
        with open(self.mount / "copy", "rb+", buffering=0) as file:
            os.pwrite(file.fileno(), b"changed", 70 * MIB)
            os.fsync(file.fileno())
        self.assertLessEqual(self.used() - used, 5 * MIB)
        self.assertTrue((self.other / "original").read_bytes() == content)
        self.assertTrue((self.other / "copy").read_bytes() == content[:70 * MIB] + b"changed" + content[70 * MIB + 7:])
        path.unlink()
        self.assertTrue((self.other / "copy").read_bytes()[:100] == content[:100])
        (self.mount / "copy").unlink()
        cluster.wait_until(lambda: self.used() <= used - 150 * MIB, 20, "the memory comes back")

    def test_who_has_either_file_open_and_read_it_before_sees_his_own(self):
        path, content = self.make("open", 8 * MIB)
        self.copy("open", "open-copy")
        with open(self.other / "open", "rb+", buffering=0) as original, \
                open(self.other / "open-copy", "rb+", buffering=0) as copy:
            for file in (original, copy):  # layouts of the place that both have
                self.assertTrue(os.pread(file.fileno(), 8 * MIB, 0) == content)
            for offset in range(0, 8 * MIB, 3 * MIB):
                os.pwrite(copy.fileno(), b"c" * 5000, offset + 100)
                os.pwrite(original.fileno(), b"o" * 5000, offset + 6000)
            os.fsync(copy.fileno())
            os.fsync(original.fileno())
        expected = {"open": bytearray(content), "open-copy": bytearray(content)}
        for offset in range(0, 8 * MIB, 3 * MIB):
            expected["open-copy"][offset + 100:offset + 5100] = b"c" * 5000
            expected["open"][offset + 6000:offset + 11000] = b"o" * 5000
        for name, bytes_of in expected.items():
            for mount in (self.mount, self.other):
                self.assertTrue((mount / name).read_bytes() == bytes_of, f"{name} at {mount}")

    def test_a_writer_under_a_layout_is_stopped_and_goes_on(self):
        # His bytes of before are in the copy, those of behind it are not.
        with open(self.other / "written", "wb+", buffering=0) as file:
            for number in range(20):
                os.pwrite(file.fileno(), bytes([number]) * 64 * KIB, 0)
                os.fsync(file.fileno())
                self.copy("written", f"written-{number}")
                os.pwrite(file.fileno(), b"\xff" * 64 * KIB, 0)
            os.fsync(file.fileno())
        for number in range(20):
            self.assertTrue((self.mount / f"written-{number}").read_bytes() == bytes([number]) * 64 * KIB, number)

    def test_what_is_not_whole_pages_is_copied(self):
        path, content = self.make("unaligned", 100_000)
        with open(path, "rb") as source, open(self.mount / "unaligned-copy", "wb") as target:
            clones = self.operations("CLONE")
            self.assertEqual(os.copy_file_range(source.fileno(), target.fileno(), 50_000, 100, 0), 50_000)
            self.assertEqual(self.operations("CLONE"), clones)
        self.assertTrue((self.other / "unaligned-copy").read_bytes() == content[100:50_100])

    def clone(self, *arguments):
        return subprocess.run([str(self.cluster.bin / "pnfsrdma"), "clone", *map(str, arguments)], capture_output=True,
                              text=True)

    def test_the_command_makes_a_whole_clone_or_nothing(self):
        path, content = self.make("whole", 5 * MIB + 7)
        path.chmod(0o640)
        used = self.used()
        done = self.clone(path, self.mount / "whole-clone")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("a clone of", done.stdout)
        self.assertTrue((self.other / "whole-clone").read_bytes() == content)
        self.assertEqual((self.other / "whole-clone").stat().st_mode & 0o777, 0o640)
        self.assertLess(self.used() - used, MIB)
        # Never over what is there, unless it is wanted; and under the name of the source in a directory.
        again = self.clone(path, self.mount / "whole-clone")
        self.assertEqual(again.returncode, 6)
        self.assertIn("--force", again.stderr)
        (self.mount / "whole-clone").write_bytes(b"something else" * 1000)
        reader = open(self.mount / "whole-clone", "rb")
        self.assertEqual(self.clone("--force", path, self.mount / "whole-clone").returncode, 0)
        self.assertTrue((self.mount / "whole-clone").read_bytes() == content)
        self.assertEqual(reader.read(14), b"something else", "who has the old one open keeps it")
        reader.close()
        (self.mount / "clones").mkdir()
        self.assertEqual(self.clone(path, self.mount / "clones").returncode, 0)
        self.assertEqual(os.listdir(self.mount / "clones"), ["whole"])
        for arguments, code in (((self.mount / "none", self.mount / "x"), 5), ((path, "/tmp/not-there"), 1),
                                (("/etc/passwd", self.mount / "x"), 1), ((self.mount / "clones", self.mount / "x"), 2)):
            refused = self.clone(*arguments)
            self.assertEqual(refused.returncode, code, refused.stderr)
        same = self.clone("--force", path, path)
        self.assertEqual((same.returncode, path.read_bytes() == content), (2, True), same.stderr)
        self.assertFalse([name for name in os.listdir(self.mount / ".") if ".clone-" in name], "nothing is left behind")

    def test_what_a_mapping_has_stored_is_in_the_clone(self):
        path, content = self.make("mapped", 100_000)
        with open(path, "rb+", buffering=0) as file, mmap.mmap(file.fileno(), 100_000) as mapped:
            mapped[5000:5006] = b"stored"
            self.assertEqual(self.clone(path, self.mount / "mapped-clone").returncode, 0)
            self.copy("mapped", "mapped-copy")
        for name in ("mapped-clone", "mapped-copy"):
            self.assertTrue((self.other / name).read_bytes() == content[:5000] + b"stored" + content[5006:], name)

    def test_the_servers_check_finds_nothing_and_a_killed_server_loses_nothing(self):
        path, content = self.make("kept", 20 * MIB)
        for number in range(5):
            self.copy("kept", f"kept-{number}")
        with open(self.mount / "kept-1", "rb+", buffering=0) as file:
            os.pwrite(file.fileno(), b"1" * MIB, 3 * MIB)
            os.fsync(file.fileno())
        os.truncate(self.mount / "kept-2", 5 * MIB + 100)
        path.unlink()
        self.cluster.kill("mds")
        checked = self.cluster.run("mdsd", "--config", str(self.cluster.home / "mds.json"), "--check", check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.cluster.start_mds()
        expected = {number: content for number in range(5)}
        expected[1] = content[:3 * MIB] + b"1" * MIB + content[4 * MIB:]
        expected[2] = content[:5 * MIB + 100]
        for number, bytes_of in expected.items():
            self.assertTrue((self.other / f"kept-{number}").read_bytes() == bytes_of, number)

    def test_two_mounts_that_do_anything_agree_with_a_model(self):
        seed = random.randrange(1 << 32)
        dice = random.Random(seed)
        names = ("one", "two", "three")
        models = {name: bytearray() for name in names}
        size_max = 4 * MIB

        def store(model, offset, data):
            model.extend(bytes(max(0, offset + len(data) - len(model))))
            model[offset:offset + len(data)] = data

        def change(mount, step):
            name, from_name = dice.choice(names), dice.choice(names)
            model = models[name]
            offset, length = dice.randrange(size_max), dice.randrange(1, 256 * KIB)
            what = dice.choice(("write", "write", "append", "truncate", "punch", "zero", "map", "clone", "clone", "copy"))
            with open(mount / name, "rb+", buffering=0) as file:
                number = file.fileno()
                if what == "write":
                    data = bytes([step % 255 + 1]) * length
                    os.pwrite(number, data, offset)
                    store(model, offset, data)
                elif what == "append" and len(model) < 2 * size_max:
                    data = bytes([step % 255 + 1]) * 5000
                    with open(mount / name, "ab", buffering=0) as log:
                        log.write(data)
                    store(model, len(model), data)
                elif what == "truncate":
                    os.ftruncate(number, offset)
                    model.extend(bytes(max(0, offset - len(model))))
                    del model[offset:]
                elif what in ("punch", "zero"):
                    mode = ["-p"] if what == "punch" else ["-z", "-n"]
                    end = min(len(model), offset + length)
                    if end > offset:
                        subprocess.run(["fallocate", *mode, "-o", str(offset), "-l", str(end - offset), mount / name],
                                       check=True)
                        model[offset:end] = bytes(end - offset)
                elif what == "map" and len(model) > PAGE:
                    offset = offset % (len(model) - PAGE) // PAGE * PAGE
                    with mmap.mmap(number, PAGE, offset=offset) as mapped:
                        mapped[10:20] = b"mapped map"
                        mapped.flush()
                    model[offset + 10:offset + 20] = b"mapped map"
                elif what in ("clone", "copy"):
                    unit = PAGE if what == "clone" else 1
                    source = models[from_name]
                    start, offset = dice.randrange(size_max) // unit * unit, offset // unit * unit
                    if dice.random() < 0.3:
                        start = offset = 0
                        length = len(source)
                    length = min(len(source) - start, max(unit, length // unit * unit))
                    if length <= 0 or (name == from_name and abs(start - offset) < length):
                        return what, name
                    data = bytes(source[start:start + length])
                    with open(mount / from_name, "rb") as reading:
                        done = 0
                        while done < length:
                            count = os.copy_file_range(reading.fileno(), number, length - done, start + done, offset + done)
                            self.assertGreater(count, 0)
                            done += count
                    store(model, offset, data)
            return what, name

        for name in names:
            (self.mount / name).touch()
        clones = self.operations("CLONE")
        for step in range(ROUNDS):
            mount = dice.choice((self.mount, self.other))
            what, name = change(mount, step)
            shown = dice.choice((self.mount, self.other))
            checked = names if dice.random() < 0.1 else (name,)
            for one in checked:
                self.assertTrue((shown / one).read_bytes() == models[one], f"seed {seed}, step {step}: {what} of {name}, {one}")
            if dice.random() < 0.01:
                self.cluster.kill("mds")
                self.cluster.start_mds()
        self.assertGreater(self.operations("CLONE"), clones)
        print(f"{ROUNDS} changes by two mounts, {self.operations('CLONE') - clones} clones by the first of them", flush=True)


if __name__ == "__main__":
    cluster.require_mounts()
    unittest.main()
