# SPDX-License-Identifier: Apache-2.0
"""The scenarios of the lab: tests/vm/scenarios/*.sh, each a list of cases that print PASS, FAIL or SKIP lines.

Each has a machine of its own: Soft-RoCE does not always come through what is done to it. One that says "# hosts: server
client ..." gets a machine of each name, all running the same script with that name as its argument; the first is linked to
each of the others. Two scenarios run side by side where memory allows: one emulated machine seldom keeps two processors busy.
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
import xml.etree.ElementTree as ElementTree

from machine import Machine, accelerator

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 900  # of one scenario; the emulated processor is 10 to 30 times slower than a real one
INSIDE = "/source/tests/vm"
BYTES_SIDE_BY_SIDE = 14 << 30  # of memory: three hosts and one machine more
UNTIL = "PNFSRDMA_TEST_UNTIL"  # seconds since 1970: no scenario begins later
NO_TIME = f"no time is left before {UNTIL}"
# What Linux 6.12 says of faults of its Soft-RoCE, seen with busy processors: a worker that runs on for ever, so that its
# queue pairs cannot be destroyed (once in some hundred queue pairs of the fencing scenario), and an Oops of such a worker
# (once, a double fault while it allocated a packet). Nothing over rxe0 is to be trusted after either.
KERNEL_FAULTS = ("rxe_destroy_qp: cleanup failed", "Workqueue: rxe_wq do_work")


class Tally:
    """Prints the lines of a job's machines and counts the cases among them. Thread-safe."""

    printing = threading.Lock()

    def __init__(self):
        self.results = {"PASS": [], "FAIL": [], "SKIP": []}

    def line(self, text):
        with Tally.printing:
            print(text, end="", flush=True)
            for line in text.splitlines():
                if match := re.match(r"(PASS|FAIL|SKIP) (.*)", line):
                    self.results[match[1]].append(match[2])

    def failed(self, what):
        self.line(f"FAIL {what}\n")

    def add(self, other):
        with Tally.printing:
            for kind, names in other.results.items():
                self.results[kind] += names

    def write(self, path, seconds):
        """As JUnit has it, which tests/totals.py reads."""
        root = ElementTree.Element("testsuite", name="lab", time=f"{seconds:.0f}")
        for kind, names in self.results.items():
            for name in names:
                took = re.search(r" \((\d+) s\)$", name)
                case = ElementTree.SubElement(root, "testcase", name=name, time=took[1] if took else "0")
                if kind == "SKIP":
                    ElementTree.SubElement(case, "skipped", message=name.partition(": ")[2])
                elif kind == "FAIL":
                    ElementTree.SubElement(case, "failure")
        path.parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(root).write(path)

    def summary(self, seconds):
        counts = {kind: len(names) for kind, names in self.results.items()}
        for kind in ("SKIP", "FAIL"):
            for name in self.results[kind]:
                print(f"  {kind} {name}")
        print(f"lab: {counts['PASS']} passed, {counts['FAIL']} failed, {counts['SKIP']} skipped, in {seconds:.0f} s")
        # What is skipped without one that passes, and not for want of time, has shown nothing.
        late = all(name.endswith(NO_TIME) for name in self.results["SKIP"])
        return 1 if counts["FAIL"] or not (counts["PASS"] or (counts["SKIP"] and late)) else 0


class Job:
    """One scenario on machines of its own; once more, on new ones, where the guest's kernel fails and not the project."""

    def __init__(self, script, cache, machine):
        self.script = script
        self.name = script.stem
        match = re.search(r"^# hosts: (.+)$", script.read_text(), re.MULTILINE)
        self.hosts = match[1].split() if match else []
        self.cache = cache
        self.machine = machine  # what all machines are made with

    def run(self):
        """Its tally."""
        tally = Tally()
        if time.time() >= end_of_time():
            tally.line(f"SKIP {self.name}: {NO_TIME}\n")
        elif fault := self.attempt(tally):
            print(f"lab: {self.name}: the kernel said \"{fault}\": this attempt does not count, another one follows")
            self.put_aside()
            tally = Tally()
            self.attempt(tally)
        return tally

    def attempt(self, tally):
        """The fault of the kernel beside which it failed, or None."""
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="pnfsrdma-lab.") as sockets:
            machines = []
            try:
                for host in self.hosts or [None]:
                    machines.append(self.boot(host, sockets, tally))
                codes = wait_for_all(machines)
            finally:
                for machine in machines:
                    machine.end()
        for machine, code in zip(machines, codes):
            if code not in (0, 1):
                tally.failed(f"{self.name}: the machine {machine.name} (exit code {code})")
        tally.line(f"lab: {self.name} took {time.monotonic() - began:.0f} s\n")
        if not tally.results["FAIL"]:
            return None
        return next((fault for fault in KERNEL_FAULTS if any(m.kernel_said(fault) for m in machines)), None)

    def put_aside(self):
        """What the attempt left, so that the next one finds nothing of it."""
        out = pathlib.Path(self.machine["out"])
        aside = out / f"{self.name}.kernel-fault"
        aside.mkdir()
        for pattern in (f"{self.name}.*", f"{self.name.replace('_', '-')}*.*"):
            for path in out.glob(pattern):
                if path != aside:
                    path.rename(aside / path.name)

    def boot(self, host, sockets, tally):
        script = f"{INSIDE}/scenarios/{self.script.name}"
        name = self.name.replace("_", "-")
        if not host:
            command = ["bash", "-c", f"{INSIDE}/guest/prepare.sh >/dev/null || exit 2; exec {script}"]
            return Machine(self.cache, command, name=name, print_line=tally.line, **self.machine)
        # Two names for the two ends of each cable between the first machine and another.
        ends = [(f"{sockets}/{o}.a", f"{sockets}/{o}.b") for o in self.hosts[1:]]
        first = host == self.hosts[0]
        links = ends if first else [(b, a) for a, b in ends if a == f"{sockets}/{host}.a"]
        own = dict(self.machine, memory="2G", pmem=("1G",) if first else ())
        return Machine(self.cache, [script, host], links=links, name=f"{name}-{host}", print_line=tally.line, **own)


def end_of_time():
    return int(os.environ.get(UNTIL) or 1 << 40)


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


def work(jobs, tally):
    """Runs jobs until there are none. A thread lives as long as its machines: they die with it."""
    while True:
        try:
            job = jobs.get_nowait()
        except queue.Empty:
            return
        try:
            tally.add(job.run())
        except Exception as error:  # noqa: BLE001: a scenario that cannot even start is a failure among others
            tally.failed(f"{job.name}: {error}")


def side_by_side():
    available = re.search(r"^MemAvailable: *(\d+) kB$", pathlib.Path("/proc/meminfo").read_text(), re.MULTILINE)
    memory = int(available[1]) << 10 if available else 0
    return 2 if memory >= BYTES_SIDE_BY_SIDE and (os.cpu_count() or 1) >= 2 else 1


def run(cache, build, wanted, results=None):
    """The scenarios that are wanted, or all; the exit code. Where results is a path, what came of each case is written to it."""
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
    machine = {"build": build, "out": out, "accelerator": accelerator(cache)}
    jobs = queue.SimpleQueue()
    for job in sorted((Job(s, cache, machine) for s in scripts), key=lambda job: -len(job.hosts)):
        jobs.put(job)
    # Daemons: when this process is told to end, it ends, and its machines with it.
    workers = [threading.Thread(target=work, args=(jobs, tally), daemon=True) for _ in range(side_by_side())]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"lab: logs are in {out}")
    if results:
        tally.write(results, time.monotonic() - began)
    return tally.summary(time.monotonic() - began)
