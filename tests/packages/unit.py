# SPDX-License-Identifier: Apache-2.0
"""Runs a systemd unit's command line in a tree, as its unit file says: user, directories, umask, limits, capabilities,
readiness, watchdog. No line of the unit is repeated here; what this does not understand it refuses (KNOWN).
"""
import functools
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import time

# What is obeyed here, and what only systemd itself can do (checked by systemd-analyze, and on a machine that runs it).
OBEYED = {"Type", "User", "Group", "ExecStart", "UMask", "LimitMEMLOCK", "LimitNOFILE", "StateDirectory", "StateDirectoryMode",
          "RuntimeDirectory", "RuntimeDirectoryMode", "RuntimeDirectoryPreserve", "WatchdogSec", "NoNewPrivileges",
          "CapabilityBoundingSet", "AmbientCapabilities", "TimeoutStartSec"}
LEFT_TO_SYSTEMD = {"ExecReload", "Restart", "RestartSec", "OOMScoreAdjust", "DevicePolicy", "DeviceAllow", "PrivateTmp", "LockPersonality",
                   "MemoryDenyWriteExecute", "RemoveIPC", "SystemCallArchitectures", "SystemCallFilter", "SystemCallErrorNumber"}


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(s|min)?", text).groups()
    return int(number) * (60 if unit == "min" else 1)


@functools.cache
def may_be_set(limit):
    """A limit that even root may not raise here (no CAP_SYS_RESOURCE) is left out, and said so."""
    if subprocess.run(["prlimit", limit, "true"], capture_output=True).returncode == 0:
        return True
    print(f"  --  not obeyed here: {limit[2:]} (this machine does not let root raise it)", flush=True)
    return False


class Unit:
    """One unit of a tree. `enter` is the command that puts the rest of a command line into the tree."""

    def __init__(self, root, name, enter):
        self.root, self.name, self.enter = pathlib.Path(root), name, enter
        found = [self.root / folder / name for folder in ("lib/systemd/system", "usr/lib/systemd/system")]
        self.settings = {}
        for line in next(path for path in found if path.exists()).read_text().splitlines():
            if match := re.fullmatch(r"(\w+)=(.*)", line.strip()):
                self.settings.setdefault(match[1], []).append(match[2])
        unknown = {key for key in self.section("Service", found) if key not in OBEYED | LEFT_TO_SYSTEMD
                   and not key.startswith(("Protect", "Restrict"))}
        if unknown:
            raise ValueError(f"{name}: this test does not know {sorted(unknown)}")
        self.process = None
        self.messages = []

    @staticmethod
    def section(name, found):
        text = next(path for path in found if path.exists()).read_text()
        body = re.search(rf"^\[{name}\]$(.*?)(?=^\[|\Z)", text, re.M | re.S)[1]
        return re.findall(r"^(\w+)=", body, re.M)

    def one(self, key, otherwise=None):
        return self.settings.get(key, [otherwise])[-1]

    def make_directories(self):
        for key, where in (("StateDirectory", "/var/lib"), ("RuntimeDirectory", "/run")):
            if name := self.one(key):
                subprocess.run([*self.enter, "install", "-d", "-o", self.one("User"), "-g", self.one("Group"),
                                "-m", self.one(key + "Mode", "0755"), f"{where}/{name}"], check=True)

    def command(self):
        limits = [limit for limit in (f"--memlock={self.one('LimitMEMLOCK').replace('infinity', 'unlimited')}",
                                      f"--nofile={self.one('LimitNOFILE')}") if may_be_set(limit)]
        assert self.one("CapabilityBoundingSet") == "" and self.one("NoNewPrivileges") == "yes"
        environment = ["NOTIFY_SOCKET=/run/notify", f"WATCHDOG_USEC={seconds(self.one('WatchdogSec')) * 1000000}",
                       "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"]
        return [*self.enter, "prlimit", *limits, "setpriv", "--reuid", self.one("User"), "--regid", self.one("Group"),
                "--init-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all",
                "env", "-i", *environment, *shlex.split(self.one("ExecStart"))]

    def start(self):
        """Returns when it is ready; a WATCHDOG=1 must have come as well."""
        self.make_directories()
        path = self.root / "run/notify"
        path.unlink(missing_ok=True)
        self.log = open(self.root / f"tmp/{self.name}.log", "a+b")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(str(path))
            path.chmod(0o666)
            notify.settimeout(0.2)
            mask = int(self.one("UMask", "0022"), 8)
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                            preexec_fn=lambda: os.umask(mask))
            end = time.monotonic() + 60
            self.messages = []
            while not {"READY=1", "WATCHDOG=1"} <= set(self.messages):
                if self.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"{self.name}: not ready (exit code {self.process.poll()}):\n{self.said()}")
                try:
                    self.messages.append(notify.recv(4096).decode())
                except socket.timeout:
                    pass

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.process = None
        if code != 0:
            raise RuntimeError(f"{self.name}: exit code {code}:\n{self.said()}")

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")
