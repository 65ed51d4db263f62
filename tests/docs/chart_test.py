#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart that is drawn from the results of `make bench` (tests/bench/chart.py)."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

CHART = pathlib.Path(__file__).parents[1] / "bench/chart.py"
SVG = "{http://www.w3.org/2000/svg}"
MOUNT = {"title": "A mount", "reference": "another & slower one", "conditions": "one CPU",
         "rows": [{"what": "4 KiB read", "unit": "IOPS", "ours": 20000, "reference": 10000},
                  {"what": "1 MiB write", "unit": "MB/s", "ours": 500, "reference": 1000}]}
TRANSPORT = {"pin": "one",
             "bandwidth": [{"bytes": size, "tcp": 4.0, "read": 3.0, "write": 2.0} for size in (4096, 1 << 20)],
             "latency": [{"bytes": 4096, "tcp": 10.0, "read": 20.0, "write": 5.0}]}


class Chart(unittest.TestCase):
    def draw(self, *results):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for number, result in enumerate(results):
                files.append(pathlib.Path(folder, f"{number}.json"))
                files[-1].write_text(json.dumps(result))
            output = pathlib.Path(folder, "chart.svg")
            done = subprocess.run([sys.executable, CHART, output, *files], capture_output=True, text=True, check=False)
            return (xml.fromstring(output.read_text()) if done.returncode == 0 else None), done.stderr

    def texts(self, svg):
        return [text.text for text in svg.iter(f"{SVG}text")]

    def widths(self, svg):
        return [float(bar.get("width")) for bar in svg.iter(f"{SVG}rect") if bar.get("class") == "bar"]

    def test_has_a_bar_for_each_row_as_long_as_its_ratio(self):
        svg, _ = self.draw(MOUNT)
        twice, half = self.widths(svg)
        self.assertAlmostEqual(twice, 4 * half, delta=0.2)
        texts = self.texts(svg)
        for words in ("4 KiB read", "2.00x", "20,000 : 10,000 IOPS", "0.50x", "500 : 1,000 MB/s"):
            self.assertIn(words, texts)

    def test_a_shorter_latency_is_the_faster(self):
        svg, _ = self.draw(TRANSPORT)
        ratios = [text for text in self.texts(svg) if text.endswith("x")]
        self.assertEqual(ratios, ["0.75x", "0.50x", "0.50x", "2.00x"])

    def test_describes_every_bar_in_words(self):
        svg, _ = self.draw(MOUNT, TRANSPORT)
        self.assertEqual(svg.get("role"), "img")
        self.assertTrue(svg.find(f"{SVG}title").text)
        spoken = svg.find(f"{SVG}desc").text
        for words in ("4 KiB read: 2.00 times, 20,000 : 10,000 IOPS", "READ, 1 MiB: 0.75 times"):
            self.assertIn(words, spoken)

    def test_is_legible_in_light_and_dark(self):
        svg, _ = self.draw(MOUNT)
        self.assertIn("prefers-color-scheme: dark", svg.find(f"{SVG}style").text)

    def test_refuses_what_was_not_measured(self):
        broken = dict(MOUNT, rows=[dict(MOUNT["rows"][0], ours=0)])
        svg, errors = self.draw(broken)
        self.assertIsNone(svg)
        self.assertIn("4 KiB read", errors)


if __name__ == "__main__":
    unittest.main()
