# SPDX-License-Identifier: Apache-2.0
"""A Debian tree to spoil: an overlay over one of tree.sh's, with processes and a network (lo) of its own."""
import pathlib
import shutil
import subprocess
import tempfile

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Tree:
    """Use as a context, in a mount namespace of one's own. `run` runs a command inside."""

    def __init__(self, base, packages):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="pnfsrdma-packages."))
        self.root = self.home / "root"
        self.base, self.packages, self.network = base, packages, None

    def make_root(self):
        for name in ("upper", "work", "root"):
            (self.home / name).mkdir()
        self.mount("-t", "overlay", "overlay", "-o", f"lowerdir={self.base},upperdir={self.home}/upper,workdir={self.home}/work")
        self.mount("--bind", str(self.packages), where="out")

    def __enter__(self):
        self.make_root()
        self.mount("-t", "proc", "proc", where="proc")
        self.mount("--bind", "/dev", where="dev")
        self.mount("-t", "tmpfs", "tmpfs", where="run")
        # Packages start no daemons here: nobody would end them.
        (self.root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (self.root / "usr/sbin/policy-rc.d").chmod(0o755)
        self.network = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep 3600"],
                                        stdout=subprocess.PIPE)
        assert self.network.stdout.readline() == b"up\n"
        return self

    def __exit__(self, *error):
        if self.network:
            self.network.kill()
            self.network.wait()
        subprocess.run(["umount", "-R", "-l", str(self.root)], check=False)
        shutil.rmtree(self.home, ignore_errors=True)

    def mount(self, *arguments, where=""):
        subprocess.run(["mount", *arguments, str(self.root / where)], check=True)

    @property
    def inside(self):
        """Puts a command into the tree and its network."""
        return ["nsenter", f"--net=/proc/{self.network.pid}/ns/net", "chroot", str(self.root), "env", "-i", PATH, "LC_ALL=C",
                "HOME=/root"]

    def run(self, *command, check=True, timeout=120, input=None):
        result = subprocess.run([*self.inside, *command], capture_output=True, text=True, timeout=timeout, input=input)
        if check and result.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: exit code {result.returncode}\n{result.stdout[-2000:]}{result.stderr[-3000:]}")
        return result

    def sh(self, text, **options):
        return self.run("sh", "-euc", text, **options).stdout

    def apt(self, *arguments, environment=()):
        """With the host's network: what packages depend on comes from the mirror."""
        command = ["chroot", str(self.root), "env", "-i", PATH, "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive", *environment,
                   "apt-get", "-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold", *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if result.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}:\n{result.stdout[-3000:]}{result.stderr[-3000:]}")
        return result.stdout + result.stderr
