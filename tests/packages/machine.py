# SPDX-License-Identifier: Apache-2.0
"""A Debian tree that its own systemd runs: units, journal, automounts and the sandbox are the real ones; the kernel is the host's.

Raises Impossible where the host does not permit it (a container without control groups).
"""
import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from tree import PATH, Tree

HERE = pathlib.Path(__file__).resolve().parent
# What would look for hardware, change the kernel, or filter the loopback.
MASKED = ("systemd-udevd.service", "systemd-udev-trigger.service", "firewalld.service", "ufw.service", "console-getty.service",
          "getty@tty1.service", "systemd-networkd.service", "systemd-firstboot.service", "systemd-binfmt.service",
          "systemd-modules-load.service", "systemd-sysctl.service", "proc-sys-fs-binfmt_misc.automount")


class Impossible(Exception):
    pass


class Group:
    """A control group of one's own, below this process's; removed with everything in it."""

    def __init__(self):
        self.hierarchy = pathlib.Path(tempfile.mkdtemp(prefix="pnfsrdma-cgroup."))
        if subprocess.run(["mount", "-t", "cgroup2", "cgroup2", self.hierarchy], capture_output=True).returncode != 0:
            self.hierarchy.rmdir()
            raise Impossible("control groups (cgroup2) cannot be mounted here")
        own = next(line[3:].strip() for line in open("/proc/self/cgroup") if line.startswith("0::"))
        self.path = self.hierarchy / own.lstrip("/") / f"pnfsrdma-packages-{os.getpid()}"
        try:
            self.path.mkdir()
        except OSError as error:
            self.remove()
            raise Impossible(f"no control group can be made here: {error}") from error

    def remove(self):
        end = time.monotonic() + 10  # what was killed takes a moment to go
        while self.path.exists() and "populated 1" in (self.path / "cgroup.events").read_text() and time.monotonic() < end:
            time.sleep(0.05)
        for folder, _, _ in os.walk(self.path, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        subprocess.run(["umount", "-l", self.hierarchy], check=False)
        self.hierarchy.rmdir()


class Machine(Tree):
    """Use as a context, in a mount namespace of one's own. boot() and power_off() as often as wanted; files stay."""

    def __init__(self, base, packages):
        super().__init__(base, packages)
        self.process = self.first = self.group = None

    def __enter__(self):
        self.make_root()
        self.group = Group()
        for unit in MASKED:
            (self.root / "etc/systemd/system" / unit).unlink(missing_ok=True)
            (self.root / "etc/systemd/system" / unit).symlink_to("/dev/null")
        (self.root / "etc/systemd/journald.conf.d").mkdir(parents=True, exist_ok=True)
        (self.root / "etc/systemd/journald.conf.d/test.conf").write_text("[Journal]\nStorage=persistent\nRateLimitBurst=0\n")
        (self.root / "etc/machine-id").write_text("")
        return self

    def __exit__(self, *error):
        self.kill()
        if self.group:
            self.group.remove()
        super().__exit__(*error)

    @property
    def inside(self):
        return ["nsenter", f"--target={self.first}", "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--root", "--wd",
                "env", "-i", PATH, "LC_ALL=C", "HOME=/root", "SYSTEMD_PAGER=", "DEBIAN_FRONTEND=noninteractive"]

    def fetch(self, packages):
        """What these packages depend on, for an apt without network. Before boot()."""
        subprocess.run(["mount", "-t", "proc", "proc", self.root / "proc"], check=True)
        self.apt("update")
        self.apt("install", "--install-recommends", "--download-only", *packages)
        subprocess.run(["umount", self.root / "proc"], check=True)

    def boot(self):
        """Returns when every unit that is started at boot has been, with the seconds it took."""
        began = time.monotonic()
        self.process = subprocess.Popen([HERE / "boot.sh", self.root, self.group.path], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.first = self.wait_for("its first process", self.find_first)
        self.wait_for("systemd", lambda: self.run("systemctl", "is-system-running", check=False).stdout.strip()
                      in ("running", "degraded"))
        return time.monotonic() - began

    def find_first(self):
        if self.process.poll() is not None:
            raise Impossible(f"systemd did not start: {self.process.stdout.read()[-2000:]}")
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return children and pathlib.Path(f"/proc/{children[0]}/comm").read_text() == "systemd\n" and int(children[0])

    def power_off(self):
        """As an administrator does it; the seconds it took."""
        began = time.monotonic()
        self.run("systemctl", "poweroff", check=False)
        self.process.wait(120)
        self.first = None
        return time.monotonic() - began

    def kill(self):
        """At once: the first process and with it all others."""
        if self.first:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.first, signal.SIGKILL)
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = self.first = None

    @staticmethod
    def wait_for(what, check, seconds=60):
        """What `check` gives when it gives something."""
        end = time.monotonic() + seconds
        while not (found := check()):
            if time.monotonic() > end:
                raise RuntimeError(f"waited {seconds} s for {what}")
            time.sleep(0.1)
        return found

    def show(self, unit, key):
        return self.run("systemctl", "show", unit, "--property", key, "--value").stdout.strip()

    def journal(self, *what):
        return self.run("journalctl", "--no-pager", "-b", *what, check=False).stdout
