#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manuals say what the programs know, all of it and nothing else.

usage: manuals_test.py BIN_DIRECTORY
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1))
ROOT = pathlib.Path(__file__).parents[2]
MAN = ROOT / "packaging/man"


def run(program, *arguments):
    result = subprocess.run([BIN / program, *arguments], capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        raise RuntimeError(f"{program} {arguments}: {result.stderr}")
    return result.stdout


def page(name):
    return (MAN / f"{name}.scd").read_text().replace("\\", "")


def options_of_help(text):
    """Every option that a --help of CLI11 lists: the lines that begin with one."""
    lines = [line for line in text.splitlines() if re.match(r"\s+-", line)]
    return {option for line in lines for option in re.findall(r"(?<![\w-])--?[a-z][\w-]*|(?<![\w-])-[A-Z](?!\w)", line.split("   ")[0].strip().split(" ")[0]
                                                              + " " + " ".join(re.findall(r",\s*(--?[\w-]+)", line[:60])))}


def options_of_page(text):
    return set(re.findall(r"\*(--?[A-Za-z][\w-]*)\*", text))


def subcommands(text):
    return re.findall(r"^  (\w+)\s", text.split("Subcommands:")[1].split("\n\n")[0], re.M) if "Subcommands:" in text else []


def keys_of(value, name=""):
    """The names of all that is in an object, as the manual has them: "a", "a.b.c", "a[].b"."""
    if isinstance(value, dict):
        dot = "." if name else ""
        return set().union(*(keys_of(inner, f"{name}{dot}{key}") for key, inner in value.items()))
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {name} | keys_of(value[0], name + "[]")
    return {name}


class Manuals(unittest.TestCase):
    def check_options(self, program, name):
        known, told = options_of_help(run(program, "--help")), options_of_page(page(name))
        self.assertEqual(known - told, set(), f"{program} has them, {name} does not")
        self.assertEqual(told - known, set(), f"{name} has them, {program} does not")

    def test_of_the_daemons_have_every_option(self):
        self.check_options("pnfsrdma-brickd", "pnfsrdma-brickd.8")
        self.check_options("pnfsrdma-mdsd", "pnfsrdma-mdsd.8")

    def test_of_partitions_has_every_verb_and_option(self):
        text = page("pnfsrdma-brickd-partition.8")
        verbs = subcommands(run("pnfsrdma-brickd", "partition", "--help"))
        self.assertEqual(set(verbs), set(re.findall(r"^\*(\w+)\*$", text.split("# OPTIONS")[0], re.M)))
        known = set().union(*(options_of_help(run("pnfsrdma-brickd", "partition", verb, "--help")) for verb in verbs))
        self.assertEqual(known ^ options_of_page(text), set())

    def test_of_the_mount_has_every_option(self):
        known = options_of_help(run("pnfsrdma-fuse", "--help"))
        told = options_of_page(page("pnfsrdma-fuse.8"))
        self.assertEqual(known ^ told, set())

    def test_of_the_command_has_every_noun_verb_and_option(self):
        text = page("pnfsrdma.1")
        seen = set()

        def walk(path):
            told = run("pnfsrdma", *path, "--help")
            seen.update(options_of_help(told))
            for verb in subcommands(told):
                self.assertRegex(text, rf"\*([\w ]+ )?{verb}( [\w ]+)?\*", f"pnfsrdma {' '.join(path)} {verb} is not in the manual")
                walk([*path, verb])
        walk([])
        told = options_of_page(text)
        self.assertEqual(seen - told, set(), "not in the manual")
        self.assertEqual(told - seen, set(), "only in the manual")

    def test_the_guide_explains_every_column_of_stat(self):
        source = (ROOT / "cli/stat/stat_report.cc").read_text() + (ROOT / "cli/stat/rates.cc").read_text()
        shown = set(re.findall(r'\{"([A-Z][A-Z /]*)"', source)) | set(re.findall(r'\{"  (\w+)"', source))
        self.assertGreater(len(shown), 20, "are the columns written otherwise now?")
        section = (ROOT / "docs/administration.md").read_text().partition("## What `pnfsrdma stat` shows")[2]
        told = {word for line in re.findall(r"^\| (`.*?) \|", section, re.M) for word in re.findall(r"`([^`]+)`", line)}
        self.assertEqual(shown - told, set(), "not in the guide")
        self.assertEqual(told - shown, set(), "only in the guide")

    def test_has_every_mount_option(self):
        source = (ROOT / "fuse-client/mount_options.cc").read_text() + (ROOT / "shared/client/connect_options.cc").read_text()
        names = set(re.findall(r'Flag\{"([\w_]+)"', source)) | set(re.findall(r'option\.name [!=]= "(\w+)"', source))
        known = re.search(r"kKnown = \{(.*?)\};", source, re.S)[1]
        names |= set(re.findall(r'"(\w+)"', known))
        self.assertGreater(len(names), 50)
        options = page("pnfsrdma-fuse.8").split("# MOUNT OPTIONS")[1].split("# EXAMPLES")[0]
        told = {name for name in re.findall(r"\*([\w_]+)(?:=\w+)?=?\*(?!\()", options)}
        self.assertEqual(names - told, set(), "not in the manual")
        self.assertEqual(told - names, set(), "only in the manual")

    def test_of_the_configuration_has_every_key(self):
        brick, mds = page("pnfsrdma.json.5").split("# BRICKD.JSON")[1].split("# MDSD.JSON")
        for program, text, config in (("pnfsrdma-brickd", brick, '{"pool": {"path": "/p"}}'), ("pnfsrdma-mdsd", mds, "{}")):
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(config)
                file.flush()
                printed = json.loads(run(program, "--config", file.name, "--print-config"))
            keys = keys_of(printed)
            told = set(re.findall(r"\*([a-z_]+(?:(?:\[\])?\.[a-z_]+)*)\*(?!\()", text.split("# EXAMPLES")[0]))
            self.assertEqual(keys - told, set(), f"{program}: not in the manual")
            self.assertEqual(told - keys, set(), f"{program}: only in the manual")

    def test_configuration_of_the_packages_is_accepted(self):
        run("pnfsrdma-brickd", "--config", ROOT / "packaging/config/brickd.json", "--print-config")
        run("pnfsrdma-mdsd", "--config", ROOT / "packaging/config/mdsd.json", "--print-config")


class Documents(unittest.TestCase):
    def test_links_lead_somewhere(self):
        bad = []
        for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
                if not (document.parent / target).exists():
                    bad.append(f"{document.name}: {target}")
        self.assertEqual(bad, [])


if __name__ == "__main__":
    unittest.main()
