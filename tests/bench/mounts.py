# SPDX-License-Identifier: Apache-2.0
"""File systems that mount_bench.py compares: ours, a ceiling, and peers. All data is in memory, on this host."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from cluster import Cluster, wait_until  # noqa: E402

MEMORY = "/dev/shm"
SSHD, GLUSTERD = shutil.which("sshd", path="/usr/sbin:/usr/bin"), shutil.which("glusterd", path="/usr/sbin:/usr/bin")


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout


class Mounted:
    """Something that is mounted on `path` until close()."""

    def __init__(self, home, name):
        self.home = home / name
        self.path = self.home / "mount"
        self.path.mkdir(parents=True)
        self.processes = []

    def start(self, *command):
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def wait_mounted(self):
        wait_until(lambda: os.path.ismount(self.path), 20, f"{self.path} is mounted")

    def close(self):
        if os.path.ismount(self.path):
            subprocess.run(["umount", str(self.path)], check=False)
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Ours:
    """Our daemons and a mount. `metadata`: the folder that the MDS's data is in."""

    def __init__(self, bin_directory, pool_size, metadata):
        kept, tempfile.tempdir = tempfile.tempdir, metadata  # the cluster's home, and with it the metadata
        try:
            self.cluster = Cluster(bin_directory, pool_size=pool_size)  # the pool on tmpfs: volatile, as the ceiling is
        finally:
            tempfile.tempdir = kept
        self.cluster.start_all()
        self.mount = self.cluster.mount()
        self.path = self.mount.path

    def close(self):
        self.mount.unmount()
        self.cluster.close()


class Memfuse(Mounted):
    """An in-memory FUSE file system, built from `sources`; with `hop` it makes one TCP round trip for each operation."""

    def __init__(self, home, sources, hop):
        super().__init__(home, "hop" if hop else "memfuse")
        program = self.home / "memfuse"
        flags = run("pkg-config", "--cflags", "--libs", "fuse3").split()
        run("g++", "-O2", "-w", "-std=c++17", sources / "memfuse.cc", "-o", program, *flags, "-lpthread")
        before = set(pathlib.Path("/tmp").glob("memfuse.hop.*"))
        self.start(program, *(["--hop"] if hop else []), "-f", self.path)
        self.wait_mounted()
        self.pid_files = set(pathlib.Path("/tmp").glob("memfuse.hop.*")) - before

    def close(self):
        super().close()
        for file in self.pid_files:
            try:
                os.kill(int(file.read_text()), signal.SIGKILL)
            except ProcessLookupError:
                pass
            file.unlink()


class Sshfs(Mounted):
    """It acknowledges writes before the server has them, and believes names and attributes for 20 seconds."""

    WHY_NOT = None if SSHD and shutil.which("sshfs") else "sshfs and openssh-server are not installed"
    PORT = 2222

    def __init__(self, home):
        super().__init__(home, "sshfs")
        self.data = pathlib.Path(tempfile.mkdtemp(prefix="pnfsrdma-peer.", dir=MEMORY))
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        host, client = self.home / "host", self.home / "client"
        for key in (host, client):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
        self.start(SSHD, "-D", "-f", "/dev/null", "-h", host, "-p", self.PORT, "-o", "ListenAddress=127.0.0.1", "-o",
                   f"AuthorizedKeysFile={client}.pub", "-o", "PidFile=none", "-o", "StrictModes=no", "-o", "UsePAM=no", "-o",
                   "PermitRootLogin=prohibit-password", "-o", "Subsystem=sftp internal-sftp")
        command = ["sshfs", "-p", self.PORT, "-o",
                   f"IdentityFile={client},StrictHostKeyChecking=no,UserKnownHostsFile=/dev/null",
                   f"root@127.0.0.1:{self.data}", self.path]
        wait_until(lambda: subprocess.run([str(word) for word in command], capture_output=True, check=False).returncode == 0, 20,
                   "sshfs is mounted")
        self.wait_mounted()

    def close(self):
        super().close()
        shutil.rmtree(self.data, ignore_errors=True)


class Gluster(Mounted):
    """One brick on this host."""

    WHY_NOT = None if GLUSTERD and shutil.which("glusterfs", path="/usr/sbin:/usr/bin") else "glusterfs-server is not installed"
    HOST, VOLUME = "127.0.0.2", "pnfsrdma-bench"

    def __init__(self, home):
        super().__init__(home, "gluster")
        self.data = pathlib.Path(tempfile.mkdtemp(prefix="pnfsrdma-peer.", dir=MEMORY))
        settings = self.home / "glusterd.vol"
        settings.write_text(f"""volume management
  type mgmt/glusterd
  option working-directory {self.home}/work
  option transport-type socket
  option transport.socket.bind-address {self.HOST}
  option transport.address-family inet
end-volume
""")
        (self.home / "work").mkdir()
        self.start(GLUSTERD, "-N", "-f", settings, "-l", self.home / "glusterd.log", "-p", self.home / "glusterd.pid")
        create = ["gluster", "--mode=script", "volume", "create", self.VOLUME, f"{self.HOST}:{self.data}/brick", "force"]
        wait_until(lambda: subprocess.run(create, capture_output=True, check=False).returncode == 0, 30, "glusterd answers")
        self.gluster("volume", "start", self.VOLUME)
        run("glusterfs", f"--volfile-server={self.HOST}", f"--volfile-id={self.VOLUME}", "-l", self.home / "mount.log", self.path)
        self.wait_mounted()

    @staticmethod
    def gluster(*words):
        subprocess.run(["gluster", "--mode=script", *words], capture_output=True, check=False)

    def close(self):
        subprocess.run(["umount", str(self.path)], check=False)
        self.gluster("volume", "stop", self.VOLUME, "force")
        self.gluster("volume", "delete", self.VOLUME)
        super().close()
        shutil.rmtree(self.data, ignore_errors=True)


PEERS = {"sshfs": Sshfs, "gluster": Gluster}
