# SPDX-License-Identifier: Apache-2.0
"""The scenarios of the lab: tests/vm/scenarios/*.sh, each a list of cases that print PASS, FAIL or SKIP lines.

Those of one machine share two, every other one each. One that says "# hosts: server client ..." gets a machine of each
name, all running the same script with that name as its argument; the first is linked to each of the others. Two such jobs
run side by side where memory allows: one emulated machine seldom keeps two processors busy.
"""
import fcntl
import os
import pathlib
import queue
import re
import shutil
import tempfile
import threading
import time

from machine import Machine, accelerator

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 1800  # of one machine's scenarios; the emulated processor is 10 to 30 times slower than a real one
INSIDE = "/source/tests/vm"
BYTES_SIDE_BY_SIDE = 14 << 30  # of memory: three hosts and one machine more
UNTIL = "PNFSRDMA_LAB_UNTIL"  # seconds since 1970: no scenario begins later
NO_TIME = f"no time is left before {UNTIL}"


class Tally:
    """Prints every line of every machine and counts the cases among them. Thread-safe."""

    def __init__(self):
        self.results = {"PASS": [], "FAIL": [], "SKIP": []}
        self.lock = threading.Lock()

    def line(self, text):
        with self.lock:
            print(text, end="", flush=True)
            for line in text.splitlines():
                if match := re.match(r"(PASS|FAIL|SKIP) (.*)", line):
                    self.results[match[1]].append(match[2])

    def failed(self, what):
        self.line(f"FAIL {what}\n")

    def summary(self, seconds):
        counts = {kind: len(names) for kind, names in self.results.items()}
        for kind in ("SKIP", "FAIL"):
            for name in self.results[kind]:
                print(f"  {kind} {name}")
        print(f"lab: {counts['PASS']} passed, {counts['FAIL']} failed, {counts['SKIP']} skipped, in {seconds:.0f} s")
        return 1 if counts["FAIL"] or not (counts["PASS"] or counts["SKIP"]) else 0


def end_of_time():
    return int(os.environ.get(UNTIL) or 1 << 40)


def hosts_of(script):
    match = re.search(r"^# hosts: (.+)$", script.read_text(), re.MULTILINE)
    return match[1].split() if match else []


def run_alone(name, scripts, settings, tally):
    names = " ".join(f"{INSIDE}/scenarios/{s.name}" for s in scripts)
    # Each scenario's own failure is among its lines; the last word tells that none was cut short.
    command = ["bash", "-c", f"{INSIDE}/guest/prepare.sh >/dev/null || exit 2; "
               f"for s in {names}; do begin=$SECONDS; "
               f"[ $(date +%s) -lt {end_of_time()} ] || {{ echo \"SKIP $(basename $s .sh): {NO_TIME}\"; continue; }}; $s; "
               "echo \"lab: $(basename $s .sh) took $((SECONDS - begin)) s\"; done; exit 0"]
    with Machine(settings["cache"], command, name=name, print_line=tally.line, **settings["machine"]) as machine:
        code = machine.wait(SECONDS)
    if code != 0:
        tally.failed(f"the machine of {', '.join(s.stem for s in scripts)} (exit code {code})")


def wait_for_all(machines):
    """The exit code of each. When one dies, the others, which would wait for it, are ended."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        over = [m for m in machines if m.over(0.2)]
        if len(over) == len(machines) or any(m.failed() for m in over):
            break
    for machine in machines:
        if not machine.over(0):
            machine.end()
    return [m.wait(10) for m in machines]


def run_together(script, hosts, settings, tally):
    if time.time() >= end_of_time():
        return tally.line(f"SKIP {script.stem}: {NO_TIME}\n")
    began = time.monotonic()
    machines = []
    with tempfile.TemporaryDirectory(prefix="pnfsrdma-lab.") as sockets:
        def links(host):
            # Two names for the two ends of each cable between the first machine and another.
            ends = [(f"{sockets}/{o}.a", f"{sockets}/{o}.b") for o in hosts[1:]]
            return ends if host == hosts[0] else [(b, a) for a, b in ends if a == f"{sockets}/{host}.a"]
        try:
            for host in hosts:
                own = dict(settings["machine"], memory="2G", pmem=("1G",) if host == hosts[0] else ())
                machines.append(Machine(settings["cache"], [f"{INSIDE}/scenarios/{script.name}", host], links=links(host),
                                        name=f"{script.stem}-{host}".replace("_", "-"), print_line=tally.line, **own))
            codes = wait_for_all(machines)
        finally:
            for machine in machines:
                machine.end()
    for host, code in zip(hosts, codes):
        if code not in (0, 1):
            tally.failed(f"{script.stem}: the machine {host} (exit code {code})")
    tally.line(f"lab: {script.stem} took {time.monotonic() - began:.0f} s\n")


def jobs_of(scripts, settings, tally):
    """What can run at the same time, the longest first."""
    alone = [s for s in scripts if not hosts_of(s)]
    jobs = queue.SimpleQueue()
    for number, group in enumerate((alone[0::2], alone[1::2]), 1):
        if group:
            jobs.put((run_alone, (f"lab{number}", group, settings, tally)))
    for script in scripts:
        if hosts := hosts_of(script):
            jobs.put((run_together, (script, hosts, settings, tally)))
    return jobs


def work(jobs, tally):
    """Runs jobs until there are none. A thread lives as long as its machines: they die with it."""
    while True:
        try:
            job, arguments = jobs.get_nowait()
        except queue.Empty:
            return
        try:
            job(*arguments)
        except Exception as error:  # noqa: BLE001: a scenario that cannot even start is a failure among others
            tally.failed(f"{job.__name__}: {error}")


def side_by_side():
    available = re.search(r"^MemAvailable: *(\d+) kB$", pathlib.Path("/proc/meminfo").read_text(), re.MULTILINE)
    memory = int(available[1]) << 10 if available else 0
    return 2 if memory >= BYTES_SIDE_BY_SIDE and (os.cpu_count() or 1) >= 2 else 1


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
    out.parent.mkdir(parents=True, exist_ok=True)
    only_run = open(f"{out}.lock", "a")
    try:
        fcntl.flock(only_run, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"lab: another run of this checkout's scenarios has {out}; end it or wait for it")
        return 2
    shutil.rmtree(out, ignore_errors=True)
    settings = {"cache": cache, "machine": {"build": build, "out": out, "accelerator": accelerator(cache)}}
    jobs = jobs_of(scripts, settings, tally)
    # Daemons: when this process is told to end, it ends, and its machines with it.
    workers = [threading.Thread(target=work, args=(jobs, tally), daemon=True) for _ in range(side_by_side())]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"lab: logs are in {out}")
    return tally.summary(time.monotonic() - began)
