#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands of the documents work: blocks marked "sh run", all of a document in order, in a root that is thrown away.

usage: commands_test.py BIN_DIRECTORY
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = {"pnfsrdma-brickd": "sbin", "pnfsrdma-mdsd": "sbin", "pnfsrdma-fuse": "bin", "pnfsrdma": "bin", "pnfsrdma-bench": "bin"}


def skip(reason):
    print(f"skipped: {reason}")
    raise SystemExit(77)


def namespaces():
    """Runs this again with mounts of its own."""
    if os.environ.get("PNFSRDMA_DOCS_INSIDE"):
        return
    if os.geteuid() != 0:
        skip("root is needed to mount")
    if not os.path.exists("/dev/fuse"):
        skip("/dev/fuse is missing")
    os.environ["PNFSRDMA_DOCS_INSIDE"] = "1"
    os.execv(ROOT / "tests/vm/own_mounts.sh", ["own_mounts.sh", sys.executable, *sys.argv])


def blocks(document):
    return re.findall(r"^```sh run\n(.*?)^```", (ROOT / document).read_text(), re.M | re.S)


class Scratch:
    """An overlay over this system's root, with the programs where packages and builds have them."""

    def __init__(self, programs):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="pnfsrdma-docs."))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8G", "tmpfs", self.home], check=True)
        for name in ("upper", "work", "root"):
            (self.home / name).mkdir()
        self.root = self.home / "root"
        layers = f"lowerdir=/,upperdir={self.home}/upper,workdir={self.home}/work"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, self.root], check=True)
        for name in ("dev", "sys"):
            subprocess.run(["mount", "--rbind", f"/{name}", self.root / name], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", self.root / "run"], check=True)
        build = self.root / "root/pnfsrdma/build/release/bin"
        build.mkdir(parents=True)
        for program, folder in PROGRAMS.items():
            shutil.copy(programs / program, build / program)
            (self.root / "usr" / folder / program).symlink_to(f"/root/pnfsrdma/build/release/bin/{program}")
        for helper in ("mount.pnfsrdma", "mount.fuse.pnfsrdma"):
            (self.root / "usr/sbin" / helper).symlink_to("../bin/pnfsrdma-fuse")
        config = self.root / "etc/pnfsrdma"
        shutil.copytree(ROOT / "packaging/config", config)

    def run(self, text):
        # Processes and a network of its own: whatever a document starts ends with it. /proc shows them (LeakSanitizer looks there).
        return subprocess.run(["unshare", "--net", "--pid", "--fork", "--kill-child", f"--mount-proc={self.root}/proc",
                               "chroot", self.root, "bash", "-euxo", "pipefail", "-c",
                               f"ip link set lo up\ncd /root/pnfsrdma\n{text}"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200)

    def close(self):
        subprocess.run(["umount", "-R", "-l", self.root], check=False)
        subprocess.run(["umount", "-l", self.home], check=False)
        self.home.rmdir()


class Commands(unittest.TestCase):
    def check(self, document, least, times=1):
        found = blocks(document) * times
        self.assertGreaterEqual(len(found), least, f"{document} has no commands to run: has the mark gone?")
        scratch = Scratch(BIN)
        try:
            result = scratch.run("\n".join(found))
            print(result.stdout)
            self.assertEqual(result.returncode, 0, result.stdout[-3000:])
            return result.stdout
        finally:
            scratch.close()

    def test_of_the_readme(self):
        # Twice: what it starts it stops, and it begins again where it ended.
        self.check("README.md", 2, times=2)

    def test_of_the_administrators_guide(self):
        self.check("docs/administration.md", 3)


namespaces()
BIN = pathlib.Path(sys.argv.pop(1)).resolve()
if __name__ == "__main__":
    unittest.main()
