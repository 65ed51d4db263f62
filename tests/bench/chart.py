#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the results of `make bench` as an SVG: one bar per row, how many times as fast as its reference.

usage: chart.py OUTPUT.svg RESULTS.json...    results of mount_bench.py --json FILE and bench-transport --json
"""
import argparse
import json
import pathlib
from xml.sax.saxutils import escape

WIDTH, MARGIN, BAR_LEFT, BAR_RIGHT = 880, 20, 330, 640
ROW, BAR = 30, 16
CPUS = {"one": "One CPU", "two": "Two CPUs", "none": "Any CPU"}  # by bench-transport --pin
STYLE = """
  svg { --paper: #ffffff; --ink: #1f2328; --faint: #57606a; --bar: #0969da }
  @media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --ink: #e6edf3; --faint: #9198a1; --bar: #4493f8 } }
  text { font: 14px system-ui, sans-serif; fill: var(--ink) }
  .title { font-size: 17px; font-weight: 600 }
  .faint { font-size: 12px; fill: var(--faint) }
  .bar { fill: var(--bar) }
  .reference { stroke: var(--faint); stroke-width: 1.5; stroke-dasharray: 4 3 }
"""


def of_transport(report):
    """The group of bench-transport --json: bandwidth at its largest size, latency at 4 KiB. A shorter latency is the faster."""
    bandwidth = max(report["bandwidth"], key=lambda row: row["bytes"])
    latency = next(row for row in report["latency"] if row["bytes"] == 4096)
    rows = []
    for key in ("read", "write"):
        rows.append({"what": f"{key.upper()}, {bandwidth['bytes'] >> 20} MiB", "unit": "GB/s", "ours": bandwidth[key], "reference": bandwidth["tcp"]})
    for key in ("read", "write"):
        rows.append({"what": f"{key.upper()}, 4 KiB, latency", "unit": "us", "ours": latency[key], "reference": latency["tcp"], "smaller_is_better": True})
    return {"title": "RDMA in user space (iWARP)", "reference": "plain TCP over loopback", "conditions": f"{CPUS[report['pin']]}, without CRC; the right column is ours : reference", "rows": rows}


def load(path):
    report = json.loads(path.read_text())
    return of_transport(report) if "bandwidth" in report else report


def speed(row):
    """How many times as fast as the reference."""
    ours, reference = row["ours"], row["reference"]
    if ours <= 0 or reference <= 0:
        raise SystemExit(f"{row['what']}: {ours} and {reference} {row['unit']} are not a measurement")
    return reference / ours if row.get("smaller_is_better") else ours / reference


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


class Chart:
    def __init__(self, groups):
        self.lines, self.spoken, self.y = [], [], MARGIN
        self.longest = max(1.0, *(speed(row) for group in groups for row in group["rows"]))
        for group in groups:
            self.group(group)

    def x(self, times):
        return BAR_LEFT + (BAR_RIGHT - BAR_LEFT) * times / self.longest

    def text(self, x, y, words, style=""):
        attribute = f' class="{style}"' if style else ""
        self.lines.append(f'<text x="{x:g}" y="{y:g}"{attribute}>{escape(words)}</text>')

    def group(self, group):
        self.text(MARGIN, self.y + 14, group["title"], "title")
        self.text(MARGIN, self.y + 34, f"Speed relative to {group['reference']} (dashed line: equal).", "faint")
        self.text(MARGIN, self.y + 51, f"{group['conditions']}.", "faint")
        top = self.y + 63
        for number_of_row, row in enumerate(group["rows"]):
            self.row(row, top + number_of_row * ROW)
        self.y = top + len(group["rows"]) * ROW
        self.lines.append(f'<line class="reference" x1="{self.x(1):g}" x2="{self.x(1):g}" y1="{top - 2}" y2="{self.y - 4}"/>')
        self.y += MARGIN

    def row(self, row, y):
        times = speed(row)
        values = f"{number(row['ours'])} : {number(row['reference'])} {row['unit']}"
        self.text(MARGIN, y + 13, row["what"])
        self.lines.append(f'<rect class="bar" x="{BAR_LEFT}" y="{y}" width="{self.x(times) - BAR_LEFT:.1f}" height="{BAR}" rx="2"/>')
        self.text(BAR_RIGHT + 10, y + 13, f"{times:.2f}x")
        self.text(BAR_RIGHT + 60, y + 13, values, "faint")
        self.spoken.append(f"{row['what']}: {times:.2f} times, {values}")

    def svg(self):
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.y}" width="{WIDTH}" height="{self.y}" role="img" aria-labelledby="title description">',
            '<title id="title">Benchmark: pnfsrdma beside its references</title>',
            f'<desc id="description">{escape("; ".join(self.spoken))}</desc>',
            f"<style>{STYLE}</style>",
            '<rect width="100%" height="100%" style="fill: var(--paper)"/>',
            *self.lines, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("results", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    arguments.output.write_text(Chart([load(path) for path in arguments.results]).svg())


if __name__ == "__main__":
    main()
