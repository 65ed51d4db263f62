# SPDX-License-Identifier: Apache-2.0
"""A brick, an MDS and mounts as a user would start them: real programs, real sockets, real mounts.

Every path, port and process belongs to one Cluster; close() (or leaving the `with` block) unmounts and ends all of it.
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from ports import free_port

START_SECONDS = 60  # under sanitizers on a busy machine
# How mounts reach the MDS: "tcp" or "rdma" (RPC-over-RDMA over iWARP). The data goes by RDMA either way.
PROTO = os.environ.get("PNFSRDMA_TEST_PROTO", "tcp")


def require_mounts():
    """Ends the test as skipped where no file system can be mounted."""
    cause = ("root is needed to mount" if os.geteuid() != 0 else
             "/dev/fuse is missing" if not os.path.exists("/dev/fuse") else None)
    if cause:
        print(f"skipped: {cause}")
        raise SystemExit(77)


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def answers(port, host="127.0.0.1"):
    try:
        socket.create_connection((host, port), timeout=1).close()
        return True
    except OSError:
        return False


def stands_still(pid):
    """All threads of the process are stopped."""
    try:
        return all((task / "stat").read_text().rpartition(")")[2].split()[0] == "T"
                   for task in pathlib.Path(f"/proc/{pid}/task").iterdir())
    except FileNotFoundError:  # one that ends just now
        return False


class Cluster:
    def __init__(self, bin_directory, pool_size="2G", pool_directory=None, durability=None, lease_seconds=30,
                 advertise=None, bricks=1, insecure=False, **mds_options):
        require_mounts()
        self.bin = pathlib.Path(bin_directory)
        self.lease_seconds = lease_seconds
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="pnfsrdma-test."))
        self.pool_directory = pathlib.Path(tempfile.mkdtemp(prefix="pnfsrdma-pool.", dir=pool_directory or "/dev/shm"))
        self.nfs_port, self.rdma_port, self.data_port = free_port(), free_port(), free_port()
        self.console_port = free_port()
        self.processes = {}
        self.mounts = []
        self.home.chmod(0o755)  # other users reach the mount
        (self.home / "mds").mkdir()
        self.data_ports = {"brick": self.data_port}
        self.brick_options = {"pool_size": pool_size, "durability": durability, "lease_seconds": lease_seconds,
                              "advertise": advertise}
        self.bricks = [self.configure_brick(number) for number in range(1, bricks + 1)]
        self.write_config("mds", {"listen": [f"127.0.0.1:{self.nfs_port}"],
                                  "rdma_listen": [f"127.0.0.1:{self.rdma_port}"],
                                  "data_directory": str(self.home / "mds"),
                                  "bricks": [self.brick_address(name) for name in self.bricks],
                                  "lease_seconds": lease_seconds, **mds_options,
                                  "console": {"socket": str(self.home / "console.sock"),
                                              "listen": [f"127.0.0.1:{self.console_port}"]},
                                  # insecure: served to ports of 1024 and above too, as proxies and Python have them
                                  "exports": [{"path": "/", "root_squash": False, "clients": ["127.0.0.0/8"],
                                               "insecure": insecure}]})

    def brick_address(self, name):
        return f"unix:{self.home}/{name}.sock"

    def configure_brick(self, number):
        """Writes the configuration of "brick", "brick2", …; returns that name."""
        name = "brick" if number == 1 else f"brick{number}"
        options = self.brick_options
        port = self.data_ports.setdefault(name, free_port())
        pool = {"path": str(self.pool_directory / ("pool.img" if number == 1 else f"pool{number}.img")),
                "size": options["pool_size"]}
        if options["durability"]:
            pool["durability"] = options["durability"]
        data = {"listen": [f"127.0.0.1:{port}"]}
        if options["advertise"]:
            data["advertise"] = [options["advertise"]]
        self.write_config(name, {"pool": pool, "control": {"unix": str(self.home / f"{name}.sock")}, "data": data,
                                 "lease_seconds": options["lease_seconds"]})
        return name

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            self.show_logs()
        self.close()

    def write_config(self, name, values):
        (self.home / f"{name}.json").write_text(json.dumps(values, indent=1))

    def program(self, name):
        return str(self.bin / f"pnfsrdma-{name}")

    def run(self, name, *arguments, check=True):
        return subprocess.run([self.program(name), *arguments], check=check, capture_output=True, text=True, timeout=300)

    def format(self):
        for name in self.bricks:
            self.format_brick(name)

    def format_brick(self, name):
        self.run("brickd", "--config", str(self.home / f"{name}.json"), "--format")

    def start(self, name, port, host="127.0.0.1"):
        program = "brickd" if name.startswith("brick") else f"{name}d"
        with open(self.home / f"{name}.log", "a") as log:
            self.processes[name] = subprocess.Popen(
                [self.program(program), "--config", str(self.home / f"{name}.json")],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        process = self.processes[name]

        def ready():
            if process.poll() is not None:
                raise RuntimeError(f"{name}d ended with {process.returncode}:\n{self.log(name)[-3000:]}")
            return answers(port, host)
        wait_until(ready, START_SECONDS, f"{name}d answers on port {port}")

    def start_brick(self, name="brick"):
        self.start(name, self.data_ports[name])

    def start_mds(self, host="127.0.0.1"):
        self.start("mds", self.nfs_port, host)

    def start_all(self):
        self.format()
        for name in self.bricks:
            self.start_brick(name)
        self.start_mds()
        return self

    def signal(self, name, number):
        process = self.processes[name]
        process.send_signal(number)
        if number == signal.SIGSTOP:  # on a busy machine some thread still answers what comes a moment later
            wait_until(lambda: stands_still(process.pid), START_SECONDS, f"{name}d stands still")

    def kill(self, name):
        """SIGKILL: a crash."""
        self.processes[name].kill()
        self.processes[name].wait()

    def stop(self, name):
        """SIGTERM: a clean shutdown, which must succeed."""
        self.processes[name].terminate()
        code = self.processes[name].wait(timeout=60)
        if code != 0:
            raise RuntimeError(f"{name}d ended with {code}:\n{self.log(name)[-3000:]}")

    def mount(self, options="", name=None, port=None, proto=PROTO):
        """Mounts in the foreground of a child process; returns a Mount. `port`: of a TCP proxy (`insecure`)."""
        if proto == "rdma" and port is None:
            port = self.rdma_port
            options = f"{options},proto=iwarp"
        mount = Mount(self, name or f"mount{len(self.mounts)}", options, port or self.nfs_port)
        self.mounts.append(mount)
        return mount

    def log(self, name):
        path = self.home / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def show_logs(self):
        for path in sorted(self.home.glob("*.log")):
            print(f"--- {path.name}\n{path.read_text(errors='replace')[-4000:]}")

    def mds_counters(self):
        """What the MDS counts, logged as one JSON line on SIGUSR1."""
        before = self.log("mds").count("counters ")
        self.signal("mds", signal.SIGUSR1)
        wait_until(lambda: self.log("mds").count("counters ") > before, START_SECONDS, "the MDS logs its counters")
        line = [l for l in self.log("mds").splitlines() if "counters " in l][-1]
        return json.loads(line[line.index("{"):])

    def close(self):
        for mount in self.mounts:
            mount.close()
        failures = [failure for name in ("mds", *self.bricks) if (failure := self.end(name))]
        failures += self.sanitizer_reports()
        shutil.rmtree(self.pool_directory, ignore_errors=True)
        if not os.environ.get("PNFSRDMA_KEEP"):
            shutil.rmtree(self.home, ignore_errors=True)
        if failures and sys.exc_info()[0] is None:
            raise RuntimeError("\n".join(failures))

    def end(self, name):
        """Ends a daemon that still runs; returns what was wrong with its end."""
        process = self.processes.get(name)
        if process is None or process.poll() is not None:
            return None  # killed or stopped by the test
        process.terminate()
        try:
            code = process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return f"{name}d did not end"
        return f"{name}d ended with {code}:\n{self.log(name)[-3000:]}" if code != 0 else None

    def sanitizer_reports(self):
        signs = ["ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "WARNING: ThreadSanitizer", "runtime error:"]
        return [f"{path.name}:\n{text[-6000:]}" for path in sorted(self.home.glob("*.log"))
                if any(sign in (text := path.read_text(errors="replace")) for sign in signs)]


class Mount:
    server = "127.0.0.1"

    def __init__(self, cluster, name, options, port):
        self.cluster, self.name = cluster, name
        self.path = cluster.home / name
        self.path.mkdir(exist_ok=True)
        with open(cluster.home / f"{name}.log", "a") as log:
            self.process = subprocess.Popen(self.command(port, options), stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)

        def ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"mount ended with {self.process.returncode}:\n{cluster.log(name)[-3000:]}")
            return os.path.ismount(self.path)
        wait_until(ready, START_SECONDS, f"{self.path} is mounted")

    def command(self, port, options):
        return [self.cluster.program("fuse"), f"{self.server}:{port}:/", str(self.path), "-f",
                *(["-o", options] if options else [])]

    def __truediv__(self, name):
        return self.path / name

    def statistics(self):
        # "system.", unlike "user.", costs no call to the MDS: fuse-client/file_system_status.cc.
        return json.loads(os.getxattr(self.path, "system.pnfsrdma.statistics"))

    def status(self):
        return json.loads(os.getxattr(self.path, "system.pnfsrdma.status"))

    def wait_until_quiet(self):
        """Until what goes on behind the work (RELEASE, CLOSE, deferred modification times) is over; returns the statistics.

        Nothing is on its way or owed, and 0.2 s later it is the same and nobody was called meanwhile.
        """
        before, end = None, time.monotonic() + 30
        while True:
            status = self.status()
            owed = {"calls": status["server"]["slots_in_use"], "closes": status["files"]["closes_owed"]}
            now = self.statistics()
            quiet = not any(owed.values())
            if quiet and before is not None and now["mds_calls"] == before["mds_calls"]:
                return now
            if time.monotonic() > end:
                raise TimeoutError(f"calls to the MDS for 30 s: {now['mds_operations']}, {owed}")
            before = now if quiet else None
            time.sleep(0.2 if quiet else 0.02)

    def unmount(self):
        subprocess.run(["umount", str(self.path)], check=True, timeout=60)
        code = self.process.wait(timeout=60)
        if code != 0:
            raise RuntimeError(f"pnfsrdma-fuse ended with {code}:\n{self.cluster.log(self.name)[-3000:]}")

    def kill(self):
        """SIGKILL of the client, and the dead mount taken away."""
        self.process.kill()
        self.process.wait()
        subprocess.run(["umount", "-l", str(self.path)], check=False)

    def close(self):
        if self.process.poll() is None:
            subprocess.run(["umount", "-l", str(self.path)], check=False, capture_output=True)
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        elif os.path.ismount(self.path):
            subprocess.run(["umount", "-l", str(self.path)], check=False, capture_output=True)


class OpenFile:
    """A file held open by a process of its own.

    Whoever starts a daemon while it holds the file itself hangs: the child closes its copy before it becomes the
    daemon, and the flush of that close waits for the daemon.
    """

    def __init__(self, path, flags=os.O_RDWR | os.O_CREAT):
        self.process = concurrent.futures.ProcessPoolExecutor(1)
        self.descriptor = self.call(os.open, path, flags)

    def start(self, function, *arguments):
        return self.process.submit(function, *arguments)

    def call(self, function, *arguments, timeout=60):
        return self.start(function, *arguments).result(timeout)

    def write(self, data, offset=0):
        while data:
            count = self.call(os.pwrite, self.descriptor, data, offset)
            data, offset = data[count:], offset + count

    def read(self, count, offset=0):
        return self.call(os.pread, self.descriptor, count, offset)

    def fsync(self):
        self.call(os.fsync, self.descriptor)

    def close(self):
        self.call(os.close, self.descriptor)
        self.process.shutdown()
