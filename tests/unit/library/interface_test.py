#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library's interface: its symbols, its header, and that its manuals and bindings have all of it.

usage: interface_test.py LIBRARY
"""
import pathlib
import re
import subprocess
import sys
import unittest

LIBRARY = pathlib.Path(sys.argv.pop(1))
ROOT = pathlib.Path(__file__).parents[3]
HEADER = ROOT / "library/pnfsrdma.h"


def declared():
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    return set(re.findall(r"\b(pnfsrdma_\w+)\(", text))


def listed():
    """The symbols of each version."""
    text = (ROOT / "library/pnfsrdma.map").read_text()
    return {version: re.findall(r"pnfsrdma_\w+(?=;)", names) for version, names in re.findall(r"^(PNFSRDMA_\S+) \{(.*?)^\}", text, re.S | re.M)}


class Interface(unittest.TestCase):
    def test_the_symbols_are_those_of_the_header_and_have_a_version(self):
        told = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
        # A sanitizer's own may be there, too.
        symbols = {line.split()[-1] for line in told.splitlines() if " A " not in line and "san" not in line.split()[-1]}
        self.assertEqual(symbols, {f"{name}@@{version}" for version, names in listed().items() for name in names})

    def test_what_was_once_there_stays(self):
        self.assertEqual(sorted(name for names in listed().values() for name in names), sorted(declared()))
        self.assertEqual([len(names) for names in listed().values()][:1], [36], "of version 0.1")

    def test_its_name_is_that_of_its_interface(self):
        told = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
        self.assertIn("[libpnfsrdma.so.0]", told)

    def test_the_header_is_c11_and_cpp17(self):
        for compiler in (["gcc", "-std=c11", "-x", "c"], ["g++", "-std=c++17", "-x", "c++"]):
            result = subprocess.run([*compiler, "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", HEADER],
                                    capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_the_header_for_cpp_is_cpp17_and_uses_every_function(self):
        header = ROOT / "library/pnfsrdma.hpp"
        result = subprocess.run(["g++", "-std=c++17", "-x", "c++", f"-I{HEADER.parent}", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only",
                                 header], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        used = set(re.findall(r"\b(pnfsrdma_\w+)\(", header.read_text()))
        self.assertEqual(declared() - used, {"pnfsrdma_preadv", "pnfsrdma_pwritev", "pnfsrdma_set_log", "pnfsrdma_version"})

    def test_the_bindings_have_every_function(self):
        bindings = (ROOT / "library/python/pnfsrdma.py").read_text()
        bound = {f"pnfsrdma_{name}" for name in re.findall(r'\("(\w+)", ', bindings)}
        self.assertEqual(declared() - bound, {"pnfsrdma_preadv", "pnfsrdma_pwritev", "pnfsrdma_set_log"})

    def test_the_manuals_have_every_function(self):
        pages = "".join(path.read_text() for path in sorted((ROOT / "packaging/man").glob("*.3.scd"))).replace("\\", "")
        self.assertEqual(declared() - set(re.findall(r"pnfsrdma_\w+", pages)), set())


if __name__ == "__main__":
    unittest.main()
