# SPDX-License-Identifier: Apache-2.0
"""The scenarios of the lab: tests/vm/scenarios/*.sh, each a list of cases that print PASS, FAIL or SKIP lines.

Those of one machine share one, in alphabetical order. One that says "# hosts: server client ..." gets a machine of each
name, all running the same script with that name as its argument; the first is linked to each of the others.
"""
import pathlib
import re
import shutil
import tempfile
import time

from machine import Machine, accelerator

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 1800  # of one machine's scenarios; the emulated processor is 10 to 30 times slower than a real one
INSIDE = "/source/tests/vm"


class Tally:
    """Prints every line of every machine and counts the cases among them."""

    def __init__(self):
        self.results = {"PASS": [], "FAIL": [], "SKIP": []}

    def line(self, prefix, text):
        print(prefix + text, end="", flush=True)
        for line in text.splitlines():
            if match := re.match(r"(PASS|FAIL|SKIP) (.*)", line):
                self.results[match[1]].append(match[2])

    def failed(self, what):
        self.line("", f"FAIL {what}\n")

    def summary(self, seconds):
        counts = {kind: len(names) for kind, names in self.results.items()}
        for kind in ("SKIP", "FAIL"):
            for name in self.results[kind]:
                print(f"  {kind} {name}")
        print(f"lab: {counts['PASS']} passed, {counts['FAIL']} failed, {counts['SKIP']} skipped, in {seconds:.0f} s")
        return 1 if counts["FAIL"] or not counts["PASS"] else 0


def hosts_of(script):
    match = re.search(r"^# hosts: (.+)$", script.read_text(), re.MULTILINE)
    return match[1].split() if match else []


def run_alone(scripts, settings, tally):
    names = " ".join(f"{INSIDE}/scenarios/{s.name}" for s in scripts)
    # Each scenario's own failure is among its lines; the last word tells that none was cut short.
    command = ["bash", "-c", f"{INSIDE}/guest/prepare.sh >/dev/null || exit 2; "
               f"for s in {names}; do begin=$SECONDS; $s; "
               "echo \"lab: $(basename $s .sh) took $((SECONDS - begin)) s\"; done; exit 0"]
    with Machine(settings["cache"], command, print_line=lambda t: tally.line("", t), **settings["machine"]) as machine:
        code = machine.wait(SECONDS)
    if code != 0:
        tally.failed(f"the machine of {', '.join(s.stem for s in scripts)} (exit code {code})")


def run_together(script, hosts, settings, tally):
    machines = []
    with tempfile.TemporaryDirectory(prefix="pnfsrdma-lab.") as sockets:
        def links(host):
            # Two names for the two ends of each cable between the first machine and another.
            ends = [(f"{sockets}/{o}.a", f"{sockets}/{o}.b") for o in hosts[1:]]
            return ends if host == hosts[0] else [(b, a) for a, b in ends if a == f"{sockets}/{host}.a"]
        try:
            for host in hosts:
                machines.append(Machine(
                    settings["cache"], [f"{INSIDE}/scenarios/{script.name}", host], name=host, links=links(host),
                    print_line=lambda t, h=host: tally.line("", t), **dict(settings["machine"], memory="2G",
                                                                           pmem=("1G",) if host == hosts[0] else ())))
            end = time.monotonic() + SECONDS
            codes = [m.wait(max(1.0, end - time.monotonic())) for m in reversed(machines)]
        finally:
            for machine in machines:
                machine.end()
    for host, code in zip(reversed(hosts), codes):
        if code not in (0, 1):
            tally.failed(f"{script.stem}: the machine {host} (exit code {code})")


def run(cache, build, wanted):
    began = time.monotonic()
    tally = Tally()
    scripts = sorted((HERE / "scenarios").glob("*.sh"))
    if wanted:
        unknown = set(wanted) - {s.stem for s in scripts}
        if unknown:
            print(f"lab: no such scenario: {', '.join(sorted(unknown))}; there are {', '.join(s.stem for s in scripts)}")
            return 2
        scripts = [s for s in scripts if s.stem in wanted]
    out = cache / "results" / build.name
    shutil.rmtree(out, ignore_errors=True)
    settings = {"cache": cache, "machine": {"build": build, "out": out, "accelerator": accelerator(cache)}}
    alone = [s for s in scripts if not hosts_of(s)]
    if alone:
        run_alone(alone, settings, tally)
    for script in scripts:
        if hosts := hosts_of(script):
            start = time.monotonic()
            run_together(script, hosts, settings, tally)
            print(f"lab: {script.stem} took {time.monotonic() - start:.0f} s", flush=True)
    print(f"lab: logs are in {out}")
    return tally.summary(time.monotonic() - began)
