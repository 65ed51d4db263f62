#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`pnfsrdma cluster init`, `invite`, `join` and `leave` make a cluster of three hosts out of a server, and take one out.

Each "host" has an address of loopback in a network of the test's own, folders, and an etcd, which gets nothing but what the commands
wrote.

usage: cluster_command_test.py BIN_DIRECTORY
"""
import base64
import ctypes
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import unittest

from cluster import Cluster, require_mounts, wait_until
from etcd import require_etcd
from pair import start_daemon, wait_for_event
from ports import free_port

BIN = sys.argv.pop(1)
SECONDS = 60  # 5.25 s for a take-over, and what sanitizers and a busy machine add
DONE, FAILED, USAGE, NO_ANSWER, NOT_PERMITTED, NOT_FOUND, CONFLICT = range(7)
CLONE_NEWNET = 0x40000000
SIX = {"mds": "fd5c::a1", "mds2": "fd5c::a2", "small": "fd5c::a3"}
SERVED = '{\n  // of the site\n  "log_level": "info", // chatty\n'


def enter_own_network():
    """This process, and those that it starts from now on: with loopback, which has IPv6 addresses with letters, too."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in SIX.values():
        subprocess.run(["ip", "address", "add", f"{address}/128", "dev", "lo", "nodad"], check=True)


def settings_of(path):
    return json.loads(path.read_text().replace("// of the site", "").replace("// chatty", ""))


def changed(token, **members):
    """The token as somebody else would make it up."""
    values = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    return base64.urlsafe_b64encode(json.dumps(values | members).encode()).decode().rstrip("=")


class Host:
    def __init__(self, home, name, address, config=None):
        self.name, self.address = name, address
        self.home = home / name
        self.home.mkdir()
        self.folder, self.settings = self.home / "cluster", self.home / "etcd.default"
        self.config = config or self.home / "none.json"
        self.brick_config = self.home / "brickd.json"
        self.ports = ["--client-port", str(free_port()), "--peer-port", str(free_port())]
        self.settings.write_text("# ETCD_NAME=\"hostname\"\n")
        self.etcd = None
        self.units = None  # a folder with a systemctl, which may start and stop etcd

    def command(self, verb, *words):
        paths = ["--directory", str(self.folder)]
        if verb != "invite":
            paths += ["--config", str(self.config), "--etcd-config", str(self.settings), "--brick-config", str(self.brick_config)]
            paths += [] if self.units else ["--no-start"]
        return [f"{BIN}/pnfsrdma", "--socket", str(self.home / "console.sock"), "cluster", verb, *words, *paths]

    def run(self, verb, *words, code=DONE):
        path = f"{self.units}:{os.environ['PATH']}" if self.units else os.environ["PATH"]
        done = subprocess.run(self.command(verb, *words), capture_output=True, text=True, timeout=120, check=False,
                              env=os.environ | {"PATH": path})
        if done.returncode != code:
            raise AssertionError(f"{self.name}: {verb} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done.stdout + done.stderr

    def become(self, verb, *words, code=DONE):
        return self.run(verb, *words, "--address", self.address, "--name", self.name, *self.ports,
                        "--data-directory", str(self.home), code=code)

    def start_etcd(self):
        set_here = dict(line.split("=", 1) for line in self.settings.read_text().splitlines() if not line.startswith("#"))
        with open(self.home / "etcd.log", "a") as log:
            self.etcd = subprocess.Popen(["etcd", "--logger", "zap"], env=os.environ | set_here, stdout=log, stderr=log,
                                         stdin=subprocess.DEVNULL)

    def have_units(self):
        self.units = self.home / "units"
        self.units.mkdir()
        program = self.units / "systemctl"
        program.write_text(f"""#!/bin/sh
echo "$@" >> {self.home}/asked
case "$*" in
"restart etcd") set -a; . {self.settings}; etcd --logger zap > {self.home}/etcd.log 2>&1 & echo $! > {self.home}/pid ;;
"disable --now etcd") kill "$(cat {self.home}/pid)"; rm {self.home}/pid ;;
esac
""")
        program.chmod(0o755)

    def stop_etcd(self):
        if (pid := self.home / "pid").exists():
            os.kill(int(pid.read_text()), signal.SIGKILL)
            pid.unlink()
        if self.etcd is not None:
            self.etcd.kill()
            self.etcd.wait()
            self.etcd = None

    def files(self):
        """But for etcd's data."""
        paths = [path for path in self.home.rglob("*") if "pnfsrdma-" not in str(path.relative_to(self.home))]
        return {path: path.read_bytes() for path in paths if path.is_file()}


class ClusterCommands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        require_mounts()
        require_etcd()
        enter_own_network()

    def setUp(self):
        self.cluster = Cluster(BIN, pool_size="512M", insecure=True)
        self.addCleanup(self.cluster.close)
        home = self.home = self.cluster.home
        config = json.loads((home / "mds.json").read_text())
        self.ports = {"mds": self.cluster.nfs_port, "mds2": free_port()}
        (home / "mds2").mkdir()
        second = config | {"listen": [f"127.0.0.1:{self.ports['mds2']}"], "rdma_listen": [], "data_directory": str(home / "mds2"),
                           "console": {"socket": str(home / "console2.sock"), "listen": []}}
        for name, values in (("mds", config), ("mds2", second)):
            (home / f"{name}.json").write_text(SERVED + json.dumps(values, indent=1)[1:])
        (home / "hosts").mkdir()
        self.first = Host(home / "hosts", "mds", "127.0.0.1", home / "mds.json")
        self.second = Host(home / "hosts", "mds2", "127.0.0.2", home / "mds2.json")
        self.witness = Host(home / "hosts", "small", "127.0.0.3")
        for host in (self.first, self.second, self.witness):
            self.addCleanup(host.stop_etcd)

    def launch(self, name, event):
        start_daemon(self.cluster, name)
        wait_for_event(self.cluster, name, event, self.cluster.log(name).count(f"mds: {event} ") + 1, SECONDS)

    def invite(self, *words, inviting=None):
        """The token, and the command, which waits."""
        port = str(free_port())
        command = (inviting or self.first).command("invite", "--json", "--port", port, *words)
        waiting = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(waiting.stdout.close)
        self.addCleanup(waiting.kill)
        return json.loads(waiting.stdout.readline())["token"], waiting

    def let_in(self, host, *words, inviting=None):
        token, waiting = self.invite(*words, inviting=inviting)
        said = host.become("join", token)
        self.assertIn("next: when etcd runs", said)
        self.assertEqual(waiting.wait(timeout=30), DONE)
        host.start_etcd()
        wait_until(lambda: "its vote" in self.try_join(host), SECONDS, f"{host.name} has its vote")
        self.assertNotIn("its vote", host.run("join"), "it has it already")
        return token

    def try_join(self, host):
        done = subprocess.run(host.command("join"), capture_output=True, text=True, timeout=120, check=False)
        return done.stdout if done.returncode == DONE and "when etcd runs" not in done.stdout else ""

    def status(self, socket, config="none.json"):
        asked = subprocess.run([f"{BIN}/pnfsrdma", "--json", "--socket", str(self.home / socket), "cluster", "status", "--config",
                                str(self.home / config)], capture_output=True, text=True, timeout=60, check=False)
        return json.loads(asked.stdout) if asked.stdout else None

    def wait_for(self, socket, wanted, what):
        wait_until(lambda: (now := self.status(socket)) is not None and wanted(now), SECONDS, what)

    def test_a_host_with_bricks_alone_is_controlled_by_members_only(self):
        first, brick = self.first, Host(self.home / "hosts", "rack-7", "127.0.0.7")
        first.become("init")
        first.start_etcd()
        wait_until(lambda: "next: systemctl enable" not in first.become("init"), SECONDS, "etcd answers")
        (self.home / "brick.json").rename(brick.brick_config)
        values = json.loads(brick.brick_config.read_text())
        port = free_port()
        brick.brick_config.write_text(SERVED + json.dumps(values | {"control": {"unix": "", "tcp": f"{brick.address}:{port}"}}, indent=1)[1:])

        # Its certificate is for its address, and for nobody else's.
        for address, code in (("", USAGE), ("rack-7", USAGE), (first.address, CONFLICT)):
            first.run("invite", "--brick", address, code=code)
        token, waiting = self.invite("--brick", brick.address)
        self.assertIn("would: ask", brick.run("join", token, "--address", brick.address, "--name", "rack-7", "--dry-run"))
        self.assertFalse(brick.folder.exists())
        for address in (first.address, "127.0.0.8"):
            said = brick.run("join", token, "--address", address, "--name", "rack-7", code=FAILED)
            self.assertIn(f"is for the host at {brick.address}", said)
        brick.run("join", changed(token, secret="0" * 64), "--address", brick.address, "--name", "rack-7", code=NOT_PERMITTED)
        self.assertEqual([path.name for path in brick.folder.iterdir()], ["brick.key"], "whom it trusts comes with its certificate")
        self.assertIn("is member mds", first.run("join", token, code=CONFLICT))
        said = brick.run("join", token, "--address", brick.address, "--name", "rack-7")
        self.assertEqual(waiting.wait(timeout=30), DONE)
        self.assertIn(f"pnfsrdma brick add tcp:{brick.address}:{port}", said)
        self.assertEqual(sorted(path.name for path in brick.folder.iterdir()), ["brick.key", "brick.pem", "ca.pem"])
        self.assertEqual(stat.S_IMODE((brick.folder / "brick.key").stat().st_mode), 0o600)
        self.assertIn(SERVED[2:], brick.brick_config.read_text(), "comments stay")
        control = settings_of(brick.brick_config)["control"]
        self.assertEqual((control["tcp"], control["tls"]["certificate"]), (f"{brick.address}:{port}", str(brick.folder / "brick.pem")))
        self.assertFalse(brick.settings.read_text().startswith("# By pnfsrdma"), "it has no etcd")

        # Its certificate opens nothing else: etcd, of which it has the authority.
        def ask_etcd(certificate, key):
            url = json.loads((first.folder / "member.json").read_text())
            return subprocess.run(["curl", "-sS", "--cacert", str(brick.folder / "ca.pem"), "--cert", str(certificate), "--key", str(key),
                                   "-d", "{}", f"https://{first.address}:{url['client_port']}/v3/cluster/member/list"],
                                  capture_output=True, text=True, check=False, timeout=60)
        self.assertIn("members", ask_etcd(first.folder / "mds.pem", first.folder / "mds.key").stdout)
        self.assertNotEqual(ask_etcd(brick.folder / "brick.pem", brick.folder / "brick.key").returncode, 0)

        # With another token the same key gets another certificate.
        before = (brick.folder / "brick.key").read_bytes(), (brick.folder / "brick.pem").read_bytes()
        token, waiting = self.invite("--brick", brick.address)
        self.assertIn("systemctl reload pnfsrdma-brickd", brick.run("join", token, "--address", brick.address, "--name", "rack-7"))
        self.assertEqual((brick.folder / "brick.key").read_bytes(), before[0])
        self.assertNotEqual((brick.folder / "brick.pem").read_bytes(), before[1])

        # Another cluster's token changes nothing.
        self.second.become("init")
        before = brick.files()
        token, waiting = self.invite("--brick", brick.address, inviting=self.second)
        said = brick.run("join", token, "--address", brick.address, "--name", "rack-7", code=CONFLICT)
        self.assertIn("controlled by another cluster", said)
        self.assertEqual(brick.files(), before)
        waiting.kill()

        # The member controls it, as it is told to.
        config = settings_of(first.config) | {"bricks": [f"tcp:{brick.address}:{port}"]}
        first.config.write_text(json.dumps(config))
        said = first.run("join")
        self.assertIn("brick_tls", said)
        tls = json.loads(said[said.index('"brick_tls": ') + len('"brick_tls": '):said.index("}, and systemctl") + 1])
        first.config.write_text(json.dumps(config | {"brick_tls": tls}))
        self.assertNotIn("brick_tls", first.run("join"))
        (self.home / "brick.json").symlink_to(brick.brick_config)
        self.cluster.format()
        self.cluster.start_brick()
        self.launch("mds", "ready")
        mount = self.cluster.mount(proto="tcp")
        (mount / "file").write_bytes(b"x" * 5_000_000)
        mount.unmount()
        self.assertIn("tls=mds", self.cluster.log("brick"))
        self.cluster.stop("mds")  # while there is its log

    def listen_at_version_6(self, host):
        host.address = SIX[host.name]
        values = settings_of(host.config)
        host.config.write_text(json.dumps(values | {
            "listen": [f"[{host.address}]:{self.cluster.nfs_port}"], "rdma_listen": [],
            "exports": [{"path": "/", "root_squash": False, "clients": ["fd5c::/64"], "insecure": True}]}))

    def mount_of(self, hosts):
        mounted = self.home / "mounted"
        mounted.mkdir()
        addresses = ",".join(f"[{host.address}]" for host in hosts)
        with open(self.home / "mount.log", "w") as log:
            mount = subprocess.Popen([f"{BIN}/pnfsrdma-fuse", f"{addresses}:/", str(mounted), "-f", "-o",
                                      f"port={self.cluster.nfs_port},proto=tcp"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.addCleanup(mount.kill)
        self.addCleanup(subprocess.run, ["umount", "-l", mounted], check=False, capture_output=True)
        wait_until(lambda: os.path.ismount(mounted), SECONDS, "it is mounted by addresses of version 6")
        return mounted

    def begin_cluster(self, host):
        host.become("init")
        host.start_etcd()
        wait_until(lambda: "next: systemctl enable" not in host.become("init"), SECONDS, "etcd answers")
        self.launch(host.name, "ready")

    def test_the_guide_with_addresses_of_version_6(self):
        cluster, first, second, witness = self.cluster, self.first, self.second, self.witness
        as_installed = first.config.read_text()
        for host in (first, second):
            self.listen_at_version_6(host)
        witness.address = SIX[witness.name]
        cluster.format()
        cluster.start_brick()

        # Three hosts, of which the first has served alone before; it is lost.
        self.launch("mds", "ready")
        mounted = self.mount_of((first, second))
        (mounted / "kept").write_text("of before the cluster")
        cluster.stop("mds")
        first.run("init", "--address", f"[{first.address}]", code=USAGE)
        self.begin_cluster(first)
        self.assertIn(f"ETCD_LISTEN_PEER_URLS=https://[{first.address}]:", first.settings.read_text())
        self.let_in(second)
        self.let_in(witness, "--witness")
        first.run("join")
        self.launch("mds2", "standby")  # with a copy of the first one's store
        self.assertIn("copy-taken", cluster.log("mds2"))
        self.wait_for("console.sock", lambda now: now["takeover_possible"], "a take-over is possible")
        self.assertEqual(self.status("console.sock")["problems"], [])
        cluster.kill("mds")
        first.stop_etcd()
        wait_for_event(cluster, "mds2", "ready", 1, SECONDS)
        self.assertEqual((mounted / "kept").read_text(), "of before the cluster")
        (mounted / "made").write_text("behind the take-over")

        # It is replaced by another host, of the same name and address.
        self.wait_for("console2.sock", lambda now: now["leader"] == "mds2", "mds2 leads")
        second.run("leave", "mds", "--yes")
        self.wait_for("console2.sock", lambda now: sorted(member["name"] for member in now["members"]) == ["mds2", "small"],
                      "the first is taken out")
        shutil.rmtree(first.home)
        shutil.rmtree(self.home / "mds")
        (self.home / "mds").mkdir()
        first.config.write_text(as_installed)
        first = Host(self.home / "hosts", "mds", first.address, first.config)
        self.addCleanup(first.stop_etcd)
        self.listen_at_version_6(first)
        self.let_in(first, inviting=second)
        for host in (second, witness):
            host.run("join")
        taken = cluster.log("mds").count("copy-taken")
        self.launch("mds", "standby")
        self.assertEqual(cluster.log("mds").count("copy-taken"), taken + 1)
        self.wait_for("console2.sock", lambda now: now["takeover_possible"], "a take-over is possible again")
        self.assertEqual(self.status("console2.sock")["problems"], [])

        # The quorum is lost for good: the host that served last goes on alone, and begins another cluster.
        cluster.kill("mds")
        first.stop_etcd()
        witness.stop_etcd()
        self.assertEqual(cluster.processes["mds2"].wait(timeout=SECONDS), 3)
        self.assertIn("--leave-log", second.run("leave", "--yes", "--force"))
        second.stop_etcd()
        cluster.run("mdsd", "--config", str(second.config), "--leave-log")
        self.launch("mds2", "ready")
        self.assertEqual((mounted / "made").read_text(), "behind the take-over")
        cluster.stop("mds2")
        self.begin_cluster(second)
        self.assertEqual((mounted / "kept").read_text(), "of before the cluster")
        subprocess.run(["umount", mounted], check=True, timeout=SECONDS)
        cluster.stop("mds2")  # while there is its log

    def test_three_hosts_become_a_cluster_and_one_is_lost(self):
        cluster, first, second, witness = self.cluster, self.first, self.second, self.witness
        cluster.start_all()
        mount = cluster.mount(proto="tcp")
        (mount / "kept").write_text("of before the cluster")
        mount.unmount()

        # The first: nothing is changed by a dry run, and by what is refused.
        before, as_it_was = first.files(), first.config.read_text()
        shown = first.become("init", "--dry-run")
        self.assertIn(f"would: write {first.config}", shown)
        self.assertIn("ETCD_CLIENT_CERT_AUTH=true", shown)
        self.assertNotIn("PRIVATE KEY", shown)
        first.run("init", "--address", "not an address", code=USAGE)
        first.run("invite", code=FAILED)
        first.run("join", code=USAGE)
        first.settings.write_text("ETCD_NAME=of-somebody-else\n")
        self.assertIn("is of another etcd", first.become("init", code=CONFLICT))
        first.settings.write_text("# ETCD_NAME=\"hostname\"\n")
        self.assertEqual((first.files(), first.config.read_text()), (before, as_it_was))
        first.become("init")
        self.assertIn(SERVED[2:], first.config.read_text())
        self.assertEqual([path.read_text() for path in self.home.glob("mds.json.before-*")], [as_it_was])
        for name in ("ca.key", "etcd.key", "mds.key"):
            self.assertEqual(stat.S_IMODE((first.folder / name).stat().st_mode), 0o600)
        written = first.files()
        first.become("init")
        self.assertEqual(first.files(), written, "again it changes nothing")
        first.start_etcd()
        wait_until(lambda: "next: systemctl enable" not in first.become("init"), SECONDS, "etcd answers")
        cluster.stop("mds")
        self.launch("mds", "ready")

        # The second, whose token is good once, and for whom it is.
        token, waiting = self.invite()
        second.become("join", token[:-8], code=USAGE)
        second.become("join", changed(token, secret="0" * 64), code=NOT_PERMITTED)
        second.become("join", changed(token, authority="0" * 64), code=NOT_PERMITTED)
        self.assertFalse((second.folder / "etcd.pem").exists())
        self.assertIn("there is no ", witness.become("join", token, code=NOT_FOUND))  # it has no MDS
        self.assertIn("would: ask a member", witness.become("join", changed(token, witness=True), "--dry-run"))
        self.assertFalse(witness.folder.exists())
        waiting.kill()
        waiting.wait()
        used = self.let_in(second)
        second.run("join", used, code=NO_ANSWER)  # nobody waits for it any more
        self.assertTrue((second.folder / "ca.key").exists())
        self.let_in(witness, "--witness")
        self.assertFalse((witness.folder / "ca.key").exists())
        self.assertFalse((witness.folder / "mds.key").exists())
        self.assertIn("systemctl restart pnfsrdma-mdsd", first.run("join"), "it knows all members now")
        self.assertEqual(len(settings_of(first.config)["metadata_log"]["endpoints"]), 3)

        cluster.stop("mds")
        shutil.copytree(self.home / "mds/metadata", self.home / "mds2/metadata")
        self.launch("mds", "ready")
        self.launch("mds2", "standby")
        self.wait_for("console.sock", lambda now: now["takeover_possible"], "a take-over is possible")
        now = self.status("console.sock")
        self.assertEqual(now["problems"], [])
        self.assertEqual(sorted(member["name"] for member in now["members"]), ["mds", "mds2", "small"])

        # The first host is lost, and taken out.
        self.assertIn("it is not lost", second.run("leave", "mds", "--yes", code=CONFLICT))
        cluster.kill("mds")
        first.stop_etcd()
        wait_for_event(cluster, "mds2", "ready", 1, SECONDS)
        self.wait_for("console2.sock", lambda now: now["leader"] == "mds2", "mds2 leads")
        mount = cluster.mount(port=self.ports["mds2"], proto="tcp")
        self.assertEqual((mount / "kept").read_text(), "of before the cluster")
        mount.unmount()
        self.assertIn("would: take mds out", second.run("leave", "mds", "--dry-run"))
        second.run("leave", "mds", "--yes")
        self.wait_for("console2.sock", lambda now: [member["name"] for member in now["members"]] in (["mds2", "small"], ["small", "mds2"])
                      and [server["name"] for server in now["servers"]] == ["mds2"], "the first is taken out")

        second.run("leave", "mds", "--yes", code=NOT_FOUND)

        # Who is needed does not leave by accident.
        second.home.joinpath("console.sock").symlink_to(self.home / "console2.sock")
        self.assertIn("no other metadata server can take over", second.run("leave", "--yes", code=CONFLICT))
        witness.run("leave", "--yes")
        self.assertFalse(witness.folder.exists())
        witness.stop_etcd()
        self.wait_for("console2.sock", lambda now: [member["name"] for member in now["members"]] == ["mds2"], "the witness has left")
        self.assertIn("is the last member", second.run("leave", "--yes", code=CONFLICT))

        # It comes back with another token, and its units are started and stopped.
        witness.have_units()
        token, _ = self.invite("--witness", inviting=second)
        self.assertIn("give small its vote", witness.become("join", token))
        self.assertEqual((witness.home / "asked").read_text(), "enable etcd\nrestart etcd\n")
        self.wait_for("console2.sock", lambda now: sorted(member["state"] for member in now["members"]) == ["answers"] * 2, "both answer")
        cluster.stop("mds2")
        witness.stop_etcd()
        self.assertIn("etcd has no quorum", second.run("leave", "--yes", code=CONFLICT))
        self.assertIn("--leave-log", second.run("leave", "--yes", "--force"))
        self.assertNotIn("metadata_log", second.config.read_text())
        self.assertIn(SERVED[2:], second.config.read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
