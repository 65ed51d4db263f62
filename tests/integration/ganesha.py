# SPDX-License-Identifier: Apache-2.0
"""NFS-Ganesha on a port and in a folder of its own: an NFSv4.1 server that is not ours."""
import pathlib
import shutil
import subprocess
import tempfile

import cluster

PROGRAM = shutil.which("ganesha.nfsd")
WHY_NOT = "ganesha.nfsd is not installed (packaging/dependencies.sh peers)"

CONFIG = """
NFS_CORE_PARAM {{ NFS_Port = {port}; Protocols = 4; Bind_addr = 127.0.0.1; Enable_RQUOTA = false; mount_path_pseudo = true;
                  RPC_Max_Connections = 10000; }}
NFSv4 {{ Minor_Versions = 1, 2; Graceless = true; RecoveryBackend = fs; }}
EXPORT {{ Export_Id = 1; Path = {path}; Pseudo = /; Access_Type = RW; Squash = No_Root_Squash; SecType = sys; FSAL {{ Name = VFS; }} }}
"""


class Ganesha:
    """The server, and the folder it exports."""

    def __init__(self, bin_directory, directory=None):
        self.bin = bin_directory  # of our client
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="pnfsrdma-other.", dir=directory))
        self.nfs_port = cluster.free_port()
        self.path = self.home / "export"
        self.path.mkdir()
        (self.home / "ganesha.conf").write_text(CONFIG.format(port=self.nfs_port, path=self.path))

    def start(self):
        self.process = subprocess.Popen([PROGRAM, "-F", "-f", self.home / "ganesha.conf", "-p", self.home / "pid", "-L",
                                         self.home / "ganesha.log", "-N", "EVENT"], stdin=subprocess.DEVNULL)
        cluster.wait_until(lambda: cluster.answers(self.nfs_port), 30, "Ganesha listens")
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def program(self, name):
        return f"{self.bin}/pnfsrdma-{name}"

    def log(self, name):
        return (self.home / f"{name}.log").read_text()

    def close(self):
        if self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.home)
