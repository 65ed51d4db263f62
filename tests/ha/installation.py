# SPDX-License-Identifier: Apache-2.0
"""Three members of etcd, two MDSs, two bricks and client hosts, each on a host of its own (network.py), below one folder.

An MDS that ends by itself is started again a second later, as systemd does it (Restart=on-failure).
"""
import contextlib
import datetime
import http.client
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

from network import SWITCH, Network, remove

sys.path.append(str(pathlib.Path(__file__).parents[1] / "integration"))
from authority import Authority
from cluster import wait_until

MEMBERS = ["etcd-1", "etcd-2", "etcd-3"]
SERVERS = ["mds-a", "mds-b"]
BRICKS = ["brick-1", "brick-2"]
FENCED = 3  # the exit code of an MDS that has lost the lead
RESTART_SECONDS = 1
SECONDS = 90  # for what takes a moment: sanitizers on a busy machine
ETCD_PORT, PEER_PORT, CONTROL_PORT, DATA_PORT, COPIES_PORT = 2379, 2380, 20050, 20051, 8445


class Daemon:
    """A program on a host, started and lost again and again. What it says goes to one log."""

    def __init__(self, network, host, log, command, restarted=False):
        self.host, self.log_path, self.restarted = host, log, restarted
        self.command = network.command(host, *command)
        self.process, self.begun, self.wanted = None, 0, False
        self.launches = []  # time.monotonic() of each start
        self.ends = []  # (time.monotonic(), exit code) of those that nobody asked for
        self.lock = threading.Lock()

    def start(self):
        with self.lock:
            self.wanted = True
            self.launch()

    def launch(self):
        with open(self.log_path, "a") as log:
            self.begun = log.tell()
            self.launches.append(time.monotonic())
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        threading.Thread(target=self.watch, args=[self.process], daemon=True).start()

    def watch(self, process):
        code = process.wait()
        with self.lock:
            if not self.wanted or process is not self.process:
                return
            self.ends.append((time.monotonic(), code))
        if self.restarted:
            time.sleep(RESTART_SECONDS)
            with self.lock:
                if self.wanted and process is self.process:
                    self.launch()

    def not_wanted(self):
        with self.lock:
            self.wanted = False
            return self.process

    def kill(self):
        process = self.not_wanted()
        if process:
            process.kill()
            process.wait()

    def stop(self):
        """SIGTERM: an orderly end, which must succeed."""
        process = self.not_wanted()
        process.terminate()
        if code := process.wait(timeout=SECONDS):
            raise RuntimeError(f"{self.host} ended with {code} when it was stopped:\n{self.said()[-3000:]}")

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    def said(self):
        """What it has logged since its last start."""
        with open(self.log_path, "rb") as log:
            log.seek(self.begun)
            return log.read().decode(errors="replace")

    def has_said(self, event):
        return f": {event} " in self.said()

    def when_said(self, event):
        """By time.monotonic(); the log has the wall clock's time, in ms."""
        line = next(line for line in self.said().splitlines() if f": {event} " in line)
        return datetime.datetime.fromisoformat(line.split()[0]).timestamp() - time.time() + time.monotonic()

    def wait_for(self, event, seconds=SECONDS):
        def has_said():
            code = self.process.poll()
            if code is not None and not (self.restarted and code == FENCED):
                raise RuntimeError(f"{self.host} ended with {code}:\n{self.said()[-2000:]}")
            return code is None and self.has_said(event)
        try:
            wait_until(has_said, seconds, f"{self.host} logs {event}")
        except TimeoutError as error:
            raise RuntimeError(f"{error}; its last words:\n{self.said()[-2000:]}") from None


class Etcd:
    """The members, and what is asked of them from the switch: it reaches whoever is not cut off."""

    def __init__(self, network, home):
        self.network, self.home = network, home
        self.peers = {name: f"http://{network.address(name)}:{PEER_PORT}" for name in MEMBERS}
        self.members = {name: self.member(name, "new") for name in MEMBERS}

    def member(self, name, state):
        clients = f"http://{self.network.address(name)}:{ETCD_PORT}"
        return Daemon(self.network, name, self.home / "logs" / f"{name}.log",
                      ["etcd", "--name", name, "--data-dir", str(self.home / name), "--logger", "zap",
                       "--initial-cluster-state", state,
                       "--listen-client-urls", clients, "--advertise-client-urls", clients,
                       "--listen-peer-urls", self.peers[name], "--initial-advertise-peer-urls", self.peers[name],
                       "--initial-cluster", ",".join(f"{each}={url}" for each, url in self.peers.items())])

    @property
    def endpoints(self):
        return [f"http://{self.network.address(name)}:{ETCD_PORT}" for name in MEMBERS]

    def ask(self, name, call, question=None):
        connection = http.client.HTTPConnection(self.network.address(name), ETCD_PORT, timeout=3)
        with contextlib.closing(connection):
            self.network.inside(SWITCH, connection.connect)
            connection.request("POST", f"/v3/{call}", json.dumps(question or {}))
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                raise OSError(f"{name}: {call}: {text.decode(errors='replace')}")
            return json.loads(text)

    def leader(self):
        """The name of the member that leads, or None while there is none that all who answer know."""
        numbers, leads = {}, set()
        for name in MEMBERS:
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                status = self.ask(name, "maintenance/status")
                numbers[status["header"]["member_id"]] = name
                leads.add(status.get("leader", "0"))
        return numbers.get(leads.pop()) if len(leads) == 1 else None

    def whole(self):
        """Whether all members are there and know the same leader."""
        try:
            statuses = [self.ask(name, "maintenance/status") for name in MEMBERS]
        except (OSError, http.client.HTTPException, ValueError):
            return False
        return len({status.get("leader", "0") for status in statuses} - {"0"}) == 1 and all("leader" in s for s in statuses)

    def wait_until_whole(self):
        wait_until(self.whole, SECONDS, "all members of etcd know one leader")

    def replace(self, name):
        """Another member, with nothing on its disk, in the place of one that is lost."""
        other = next(each for each in MEMBERS if each != name)
        number = next(member["ID"] for member in self.ask(other, "cluster/member/list")["members"] if member.get("name") == name)
        self.until_taken(other, "cluster/member/remove", {"ID": number})
        self.until_taken(other, "cluster/member/add", {"peerURLs": [self.peers[name]]})
        shutil.rmtree(self.home / name)
        self.members[name] = self.member(name, "existing")
        self.members[name].start()

    def until_taken(self, member, call, question):
        """etcd refuses a change of its members while it is not sure that the others are well."""
        def taken():
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.ask(member, call, question)
                return True
        wait_until(taken, SECONDS, f"etcd takes {call}")


class Mount:
    def __init__(self, installation, host, name, servers, options=""):
        self.path = installation.home / name
        self.path.mkdir(exist_ok=True)
        addresses = ",".join(installation.network.address(server) if server in SERVERS else server for server in servers)
        self.daemon = Daemon(installation.network, host, installation.home / "logs" / f"{name}.log",
                             [str(installation.bin / "pnfsrdma-fuse"), f"{addresses}:/", str(self.path), "-f",
                              *(["-o", options] if options else [])])
        self.daemon.start()

    def mounted(self):
        # Not by looking at it: that would wait for a server.
        return f" {self.path} " in pathlib.Path("/proc/mounts").read_text()

    def wait(self):
        wait_until(self.mounted, SECONDS, f"{self.path} is mounted")
        return self

    def close(self):
        process = self.daemon.not_wanted()
        subprocess.run(["umount", str(self.path)], check=False, capture_output=True, timeout=SECONDS)
        if self.mounted():
            subprocess.run(["umount", "-l", str(self.path)], check=False, capture_output=True)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Installation:
    def __init__(self, bin_directory, home, prefix, clients=1):
        self.bin, self.home, self.prefix = pathlib.Path(bin_directory).resolve(), pathlib.Path(home), prefix
        (self.home / "logs").mkdir(parents=True)
        self.closing = contextlib.ExitStack()  # of who works here
        self.clients = [f"client-{number}" for number in range(1, clients + 1)]
        self.network = Network(prefix, [*MEMBERS, *SERVERS, *BRICKS, *self.clients])
        self.etcd = Etcd(self.network, self.home)
        self.authority = Authority(self.home, "ca")  # of the control of bricks, and of copies of the metadata
        self.bricks = {name: self.configure("brickd", name, self.brick_settings(name)) for name in BRICKS}
        self.servers = {name: self.configure("mdsd", name, self.server_settings(name), restarted=True) for name in SERVERS}

    def configure(self, program, name, settings, restarted=False):
        path = self.home / f"{name}.json"
        path.write_text(json.dumps(settings, indent=1))
        (self.home / name).mkdir()
        return Daemon(self.network, name, self.home / "logs" / f"{name}.log",
                      [str(self.bin / f"pnfsrdma-{program}"), "--config", str(path)], restarted)

    def brick_settings(self, name):
        address = self.network.address(name)
        self.authority.issue(name, "serverAuth", address)
        return {"pool": {"path": str(self.home / name / "pool.img"), "size": "256M"}, "log_level": "debug",
                "control": {"unix": "", "tcp": f"{address}:{CONTROL_PORT}", "tls": self.authority.files(name)}, "data": {"listen": [f"{address}:{DATA_PORT}"]}}

    def server_settings(self, name):
        self.authority.issue(name, "serverAuth,clientAuth", self.network.address(name))
        files = self.authority.files(name)
        return {"listen": [f"{self.network.address(name)}:2049"], "data_directory": str(self.home / name),
                "bricks": [f"tcp:{self.network.address(brick)}:{CONTROL_PORT}" for brick in BRICKS],
                "brick_tls": files,
                "metadata_log": {"endpoints": self.etcd.endpoints, "name": name, "copies": f"{self.network.address(name)}:{COPIES_PORT}", **files},
                "console": {"socket": str(self.home / f"{name}.sock"), "listen": []},
                "exports": [{"path": "/", "root_squash": False, "clients": ["10.87.0.0/24"]}]}

    @property
    def daemons(self):
        return {**self.etcd.members, **self.bricks, **self.servers}

    def start(self):
        for member in self.etcd.members.values():
            member.start()
        for brick in self.bricks.values():
            subprocess.run([*brick.command, "--format"], check=True, capture_output=True)
            brick.start()
        self.etcd.wait_until_whole()
        first, second = self.servers.values()
        first.start()
        first.wait_for("ready")
        second.start()
        second.wait_for("standby")
        return self

    def mount(self, host, name, servers=SERVERS, options="", wait=True):
        """`servers`: names of MDSs, or addresses."""
        mount = Mount(self, host, name, servers, options)
        return mount.wait() if wait else mount

    def serving(self):
        """The MDS that serves, or None."""
        return next((server for server in self.servers.values() if server.running and server.has_said("ready")), None)

    def lose_disk(self, server):
        """Of an MDS that does not run: it starts as on another host of the same name."""
        folder = self.home / server.host
        shutil.rmtree(folder)
        folder.mkdir()

    def standing_by(self):
        return next(server for server in self.servers.values() if server is not self.serving())

    def wait_until_settled(self):
        """One MDS serves, the other follows, and all members of etcd agree."""
        self.etcd.wait_until_whole()

        def settled():
            serving = [server for server in self.servers.values() if server.running and server.has_said("ready")]
            following = [server for server in self.servers.values() if server.running and server.has_said("standby")]
            return len(serving) == 1 and len(following) == 2
        wait_until(settled, SECONDS, "one MDS serves and the other follows")

    def check_media(self):
        """Stops MDSs and bricks in order, and lets each look at what it has; returns what they found."""
        for daemon in (*self.servers.values(), *self.bricks.values()):
            if daemon.running:
                daemon.stop()
        found = []
        for daemon in (*self.bricks.values(), *self.servers.values()):
            checked = subprocess.run([*daemon.command, "--check"], capture_output=True, text=True, check=False)
            if checked.returncode != 0:
                found.append(f"{daemon.host}: --check: {checked.stdout}{checked.stderr}")
        return found

    def close(self):
        self.closing.close()
        for daemon in self.daemons.values():
            daemon.not_wanted()
        take_away(self.prefix, self.home)


def take_away(prefix, home):
    """Mounts, processes, namespaces and the folder, also those of a run that did not get to its end."""
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        if line.split()[1].startswith(f"{home}/"):
            subprocess.run(["umount", "-l", line.split()[1]], check=False, capture_output=True)
    remove(prefix)
    shutil.rmtree(home, ignore_errors=True)
