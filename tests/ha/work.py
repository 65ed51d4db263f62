# SPDX-License-Identifier: Apache-2.0
"""Workers (worker.py) from outside: what was acknowledged to each and when, how long it waited, and whether all of it is there."""
import pathlib
import subprocess
import sys
import threading
import time

from installation import SERVERS, wait_until

HERE = pathlib.Path(__file__).parent
PATIENCE = 120  # seconds until a worker counts as hanging
CHECK_SECONDS = 120  # for a look of a fresh mount, and
CHECKED_A_SECOND = 20  # of the files, at least: on a machine with much else to do


class Operation:
    __slots__ = ("number", "begun", "ended")

    def __init__(self, number, begun, ended):
        self.number, self.begun, self.ended = number, begun, ended


class Worker:
    def __init__(self, kind, path, log):
        self.kind, self.path = kind, path
        self.log_path = log
        with open(log, "a") as errors:
            self.process = subprocess.Popen([sys.executable, HERE / "worker.py", kind, str(path)], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
        self.operations = []  # those that were acknowledged, in order
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            number, begun, ended = line.split()
            self.operations.append(Operation(int(number), float(begun), float(ended)))

    @property
    def acknowledged(self):
        return self.operations[-1].number if self.operations else 0

    def check_that_it_works(self):
        if self.process.poll():
            words = pathlib.Path(self.log_path).read_text()
            raise RuntimeError(f"{self.kind}: the worker ended with {self.process.returncode}:\n{words[-2000:]}")

    def goes_on(self, since):
        """Waits for an operation that was begun behind that moment."""
        def began():
            self.check_that_it_works()
            return self.operations and self.operations[-1].begun > since
        wait_until(began, PATIENCE, f"{self.kind} goes on")

    def gap(self, since):
        """Seconds from that moment on that one operation waited, at most."""
        return max((operation.ended - max(operation.begun, since) for operation in reversed(self.operations)
                    if operation.ended >= since), default=0.0)

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"{self.kind}: an operation hangs for {PATIENCE} s") from None
        self.reader.join()
        self.check_that_it_works()

    def kill(self):
        self.process.kill()


class Work:
    """A writer of files and a database on one mount."""

    def __init__(self, system, host="client-1", servers=SERVERS):
        self.system, self.host, self.servers = system, host, servers
        self.mount = system.mount(host, f"mount-{host}", servers)
        self.workers = [Worker(kind, self.mount.path / kind, system.home / "logs" / f"{kind}.log") for kind in ("files", "database")]
        system.closing.callback(self.kill)
        self.checked, self.looks = 0, 0
        self.goes_on(time.monotonic())

    def goes_on(self, since):
        for worker in self.workers:
            worker.goes_on(since)

    def gaps(self, since):
        """How long files and the database waited."""
        return [worker.gap(since) for worker in self.workers]

    def check(self, everything=False):
        """A fresh mount sees all that was acknowledged, and nothing else. Only what is new is read, or all of it."""
        files, database = self.workers
        for worker in self.workers:
            worker.check_that_it_works()
        self.looks += 1
        first = 1 if everything else self.checked + 1
        last = files.acknowledged
        mount = self.system.mount(self.host, f"look-{self.looks}", self.servers)
        command = [sys.executable, HERE / "check.py", mount.path, str(first), str(last), str(database.acknowledged)]
        seconds = CHECK_SECONDS + (last - first) / CHECKED_A_SECOND
        try:
            found = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"a look at {last - first + 1} files through a fresh mount takes longer than {seconds:.0f} s") from None
        finally:
            mount.close()
        if found.returncode != 0:
            raise AssertionError(f"{found.stdout}{found.stderr}".strip())
        self.checked = last
        return last, database.acknowledged

    def end(self):
        for worker in self.workers:
            worker.end()

    def kill(self):
        for worker in self.workers:
            worker.kill()
