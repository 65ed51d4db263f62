#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two mounts change and look at the names of one directory, at random, beside a model of it. Each operation's answer is
compared: without caches (actimeo=0) with the directory as it is, with them with what it was within the time for which
the mount may believe it. What the server alone decides (O_EXCL, a listing of names just changed) has no such time.

usage: names_model_test.py BIN_DIRECTORY [SEED...]
"""
import os
import random
import sys
import time
import unittest

from cluster import Cluster

BIN = sys.argv.pop(1)
SEEDS = [int(seed) for seed in sys.argv[1:]] or [1, 2, 3]
del sys.argv[1:]
NAMES = ["a", "b", "c", "d", "e"]
OPERATIONS = 400


class Directory:
    """Names and the files behind them, and what each name was when."""

    def __init__(self):
        self.files = {}  # name -> number of a file
        self.numbers = 0
        self.history = {name: [(0.0, None)] for name in NAMES}  # name -> [(since, file)]

    def set(self, name, number):
        if number is None:
            self.files.pop(name, None)
        else:
            self.files[name] = number
        self.history[name].append((time.monotonic(), number))

    def new(self, name):
        self.numbers += 1
        self.set(name, self.numbers)

    def links(self, name):
        return list(self.files.values()).count(self.files[name])

    def states(self, name, since):
        """All that the name was at `since` and later: files, or None."""
        changes = self.history[name]
        at = max(index for index, (when, _) in enumerate(changes) if when <= since)
        return {number for _, number in changes[at:]}


def errno_of(work):
    try:
        work()
        return 0
    except OSError as error:
        return type(error)


class NamesModel(unittest.TestCase):
    runs = 0

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN).start_all()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def run_model(self, options, believed, seed, attributes_too=True):
        """`believed`: for how many seconds a name that is there, or is not, may be taken for what it was."""
        mounts = [self.cluster.mount(f"{options},flush_after=0", name=name) for name in ("one", "two")]
        NamesModel.runs += 1
        root = f"names-{NamesModel.runs}"
        (mounts[0] / root).mkdir()
        chance = random.Random(seed)
        model = Directory()
        inodes = {}
        began = time.monotonic()
        slowest = 0.1
        for step in range(OPERATIONS):
            # In turns of some length: caches are of use only to who does several things one after the other.
            if step == 0 or chance.random() < 0.2:
                mount = chance.choice(mounts)
            name, other = chance.choice(NAMES), chance.choice(NAMES)
            path, other_path = mount / root / name, mount / root / other
            what = chance.choice(["create", "unlink", "rename", "link", "look", "look", "list"])
            text = f"seed {seed}, step {step}: {what} {name} {other} on {mount.path.name}"
            start = time.monotonic()
            since = max(began, start - believed - slowest)

            def states(one):
                return model.states(one, since) if believed else {model.files.get(one)}

            def may_be_there(one):
                return {number is not None for number in states(one)}

            # What a mount takes for one file, another client may have made two, and the other way round: not here.
            if what == "rename" and believed and (states(name) & states(other)) - {None}:
                continue
            if what == "link" and len(states(name)) > 1:
                continue

            if what == "create":
                error = errno_of(lambda: os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)))
                self.assertIn(error, (0, FileExistsError), text)
                # Nobody else did anything meanwhile.
                if error == 0:
                    self.assertNotIn(name, model.files, text)
                    model.new(name)
                else:
                    self.assertIn(True, may_be_there(name), text)
            elif what == "unlink":
                error = errno_of(lambda: os.unlink(path))
                if error == 0:
                    self.assertIn(name, model.files, text)
                    model.set(name, None)
                else:
                    self.assertEqual(error, FileNotFoundError, text)
                    self.assertIn(False, may_be_there(name), text)
            elif what == "rename":
                error = errno_of(lambda: os.rename(path, other_path))
                if error == 0:
                    self.assertIn(name, model.files, text)
                    number = model.files[name]
                    if model.files.get(other) != number:
                        model.set(name, None)
                        model.set(other, number)
                else:
                    self.assertIn(False, may_be_there(name), f"{text}: {error}")
            elif what == "link":
                error = errno_of(lambda: os.link(path, other_path))
                if error == 0:
                    self.assertIn(name, model.files, text)
                    self.assertNotIn(other, model.files, text)
                    model.set(other, model.files[name])
                elif error == FileExistsError:
                    self.assertIn(True, may_be_there(other), text)
                else:
                    self.assertIn(False, may_be_there(name), f"{text}: {error}")
            elif what == "look":
                try:
                    status = os.stat(path)
                except FileNotFoundError:
                    status = None
                self.assertIn(status is not None, may_be_there(name), text)
                if status is not None and attributes_too and not believed:
                    self.assertEqual(status.st_nlink, model.links(name), text)
                    self.assertEqual(inodes.setdefault(model.files[name], status.st_ino), status.st_ino, text)
            else:
                listed = set(os.listdir(mount / root))
                for one in NAMES:
                    self.assertIn(one in listed, may_be_there(one), f"{text}: {one}")
            slowest = max(slowest, time.monotonic() - start)
        # In the end all agree.
        time.sleep(believed)
        for mount in mounts:
            self.assertEqual({name for name in NAMES if (mount / root / name).exists()}, set(model.files))
            mount.unmount()

    def test_without_caches_all_is_exact(self):
        for options in ("actimeo=0", "actimeo=0,lookupcache=none"):
            for seed in SEEDS:
                with self.subTest(options=options, seed=seed):
                    self.run_model(options, 0, seed)

    def test_what_is_believed_was_so_a_second_ago(self):
        for options in ("actimeo=1", "actimeo=1,lookupcache=pos"):
            for seed in SEEDS:
                with self.subTest(options=options, seed=seed):
                    self.run_model(options, 1, seed)

    def test_without_names_there_is_no_old_one(self):
        """lookupcache=none: whether a name is there is the server's word, whatever is believed of attributes."""
        for seed in SEEDS:
            with self.subTest(seed=seed):
                self.run_model("actimeo=3600,lookupcache=none", 0, seed, attributes_too=False)


if __name__ == "__main__":
    unittest.main()
