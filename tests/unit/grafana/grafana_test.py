#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dashboard and the alert rules ask for metrics that the programs give, and Prometheus understands them.

usage: grafana_test.py SOURCE_ROOT
"""
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[3]
FOLDER = ROOT / "packaging" / "grafana"
NAME = re.compile(r"\bpnfsrdma_[a-z][a-z0-9_]*\b")


def given():
    """The names the sources give: written whole by the server, without their beginning by the mount."""
    server = set(NAME.findall((ROOT / "server/console/metrics.cc").read_text()))
    mount = (ROOT / "fuse-client/mount_metrics.cc").read_text()
    client = {"pnfsrdma_client_" + name for name in re.findall(r'\b(?:counter|gauge)\(\s*"([a-z0-9_]+)"', mount)}
    return server | client | set(NAME.findall(mount))


def dashboard():
    return json.loads((FOLDER / "dashboard.json").read_text())


def asked(text):
    """Metric names of an expression, histograms by the name of their family."""
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in NAME.findall(text)}


class Grafana(unittest.TestCase):
    def test_the_programs_give_what_is_asked_for(self):
        self.assertGreater(len(given()), 50)
        expressions = [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(expressions), 30)
        for expression in expressions:
            with self.subTest(expression):
                self.assertTrue(asked(expression))
                self.assertLessEqual(asked(expression), given())
        for variable in dashboard()["templating"]["list"]:
            self.assertLessEqual(asked(variable.get("definition", "")), given())
        rules = (FOLDER / "alerts.yml").read_text()
        for expression in re.findall(r"^ +expr: (.*)$", rules, re.M):
            with self.subTest(expression):
                self.assertLessEqual(asked(expression), given())

    def test_panels_lie_beside_each_other(self):
        panels = dashboard()["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        for one, other in itertools.combinations([panel["gridPos"] for panel in panels], 2):
            apart = (one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"] or
                     one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"])
            self.assertTrue(apart, f"{one} and {other}")
        self.assertTrue(all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels))

    def test_every_alert_says_what_to_do_and_is_tried(self):
        rules = (FOLDER / "alerts.yml").read_text()
        tried = (FOLDER / "alerts_test.yml").read_text()
        alerts = re.findall(r"alert: (\w+)", rules)
        self.assertEqual(len(re.findall(r"^ +description: ", rules, re.M)), len(alerts))
        for alert in alerts:
            self.assertIn(alert, tried)

    def test_promtool_agrees(self):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed (package prometheus)")
        for command in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
            done = subprocess.run(["promtool", *command], cwd=FOLDER, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
