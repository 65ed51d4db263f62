#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns of phrase that the documents had once and that administrators stumble over do not come back."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).parents[2]
# What is not written, and what is written instead.
BETTER = {
    r"\banew\b": "again; recreated, rebuilt, reconnected",
    r"\bfor ever\b": "forever",
    r"\bso long (as|an?|the)\b": "while, as long as",
    r"\b(for|how) so long\b": "for this time",
    r"\bfor want of\b": "for lack of",
    r"\bstrangers?\b": "third-party; peers",
    r"\b(giv(e|es|en|ing)|gave) (\w+ )?back\b": "return",
    r"\bsent again\b": "retried, resent",
    r"\bwritten again\b": "rewritten",
    r"\b(can|may|to) be had\b": "available",
    r"\b(goes|travels|come) by (iwarp|iWARP|TCP)\b": "uses",
    r"\bsaid once\b": "logged once",
}


def documents():
    folders = ("cli", "fuse-client", "packaging", "server", "shared", "tests", "web")
    readmes = [readme for folder in folders for readme in (ROOT / folder).rglob("README.md") if "node_modules" not in readme.parts]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "packaging/man").glob("*.scd"), *readmes]


def crooked(text):
    """(line, phrase, better) of each one in `text`. A phrase may go over the end of a line, never over that of a paragraph."""
    text = re.sub(r"`[^`\n]*`", lambda code: "`" * len(code[0]), text)  # names keep their words
    found = []
    for pattern, better in BETTER.items():
        for match in re.finditer(pattern.replace(" ", r"(?: |\n(?!\n))"), text):
            found.append((text[:match.start()].count("\n") + 1, match[0], better))
    return found


class Words(unittest.TestCase):
    def test_crooked_phrases_stay_out_of_documents(self):
        bad = [f"{path.relative_to(ROOT)}:{line}: {phrase!r}: write {better}"
               for path in documents() for line, phrase, better in crooked(path.read_text())]
        self.assertEqual(bad, [], "\n" + "\n".join(bad))

    def test_finds_a_phrase_over_the_end_of_a_line_and_spares_names(self):
        self.assertEqual([line for line, _, _ in crooked("a\nit waits for\never")], [2])
        self.assertEqual(crooked("`--anew`"), [])
        self.assertEqual(crooked("a layout is returned"), [])


if __name__ == "__main__":
    unittest.main()
