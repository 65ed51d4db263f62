#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program `pnfsrdma` against a running server: over the Unix socket, and over HTTPS with a token.

usage: cli_test.py BIN_DIRECTORY
"""
import json
import os
import pty
import select
import subprocess
import sys
import time
import unittest

from cluster import Cluster, OpenFile, wait_until

BIN = sys.argv.pop(1)
MIB = 1 << 20
PASSWORD = "correct horse battery"


class Cli(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BIN, pool_size="256M", durability="process").start_all()
        cls.mount = cls.cluster.mount()
        cls.file = OpenFile(cls.mount / "held")
        cls.file.write(b"x" * MIB)
        cls.file.fsync()
        # The console may still show what it was told before the MDS had the brick.
        wait_until(lambda: json.loads(cls.cli("--json", "brick", "list").stdout)[0]["state"] == "ready", 10,
                   "the brick is shown as ready")

    def setUp(self):
        # Whoever makes an export ends the handles of what is open, and its layouts go.
        self.file.close()
        type(self).file = OpenFile(self.mount / "held")
        self.file.write(b"x" * MIB)
        self.file.fsync()

    @classmethod
    def tearDownClass(cls):
        cls.file.close()
        cls.mount.unmount()
        cls.cluster.close()

    @classmethod
    def cli(cls, *arguments, given=None, environment=None, socket=True):
        where = ["--socket", f"{cls.cluster.home}/console.sock"] if socket else []
        return subprocess.run([f"{BIN}/pnfsrdma", *where, *map(str, arguments)], input=given or "", capture_output=True,
                              text=True, timeout=120, env={**os.environ, **(environment or {})})

    def value(self, *arguments, **keywords):
        """What --json prints."""
        done = self.cli("--json", *arguments, **keywords)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def fails(self, code, *arguments, **keywords):
        done = self.cli(*arguments, **keywords)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr

    def test_health_and_version(self):
        self.assertEqual(self.value("health")["version"]["product"], "pnfsrdma")
        shown = self.cli("health")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("CHECK", shown.stdout)

    def test_bricks_and_devices(self):
        (brick,) = self.value("brick", "list")
        self.assertEqual(brick["state"], "ready")
        self.assertEqual(self.value("brick", "show", brick["id"][:8])["id"], brick["id"])
        self.assertEqual(self.value("brick", "show", brick["address"])["id"], brick["id"])
        (device, *_) = self.value("device", "list")
        self.assertEqual(device["brick"], brick["id"])
        states = {run["state"] for run in self.value("brick", "blocks", brick["id"])}
        self.assertIn("granted-write", states)
        self.assertIn("held", self.cli("brick", "blocks", brick["id"]).stdout)
        self.fails(5, "brick", "show", "no-such-brick")

    def test_a_brick_with_data_is_not_removed_and_who_holds_it_is_said(self):
        (brick,) = self.value("brick", "list")
        self.fails(6, "brick", "remove", brick["id"], "--yes")
        self.fails(2, "brick", "remove", brick["id"])  # nobody to confirm it
        (still,) = self.value("brick", "list")
        self.assertEqual(still["id"], brick["id"])

    def test_a_check_is_followed_to_its_end(self):
        (brick,) = self.value("brick", "list")
        job = self.value("brick", "check", brick["id"])
        self.assertEqual((job["kind"], job["state"]), ("check", "done"))
        self.assertIn(job["id"], [each["id"] for each in self.value("job", "list")])
        self.assertEqual(self.value("job", "follow", job["id"])["state"], "done")

    def test_exports(self):
        command = ("export", "create", "/projects", "--read-only", "--clients", "192.0.2.0/24,2001:db8::/32")
        # This host has / mounted and would lose the path: that is asked, and nobody is there to answer.
        self.assertIn("1 of them may not mount /projects", self.fails(2, *command))
        made = self.value(*command, "--yes")
        self.assertEqual((made["read_only"], made["clients"]), (True, ["192.0.2.0/24", "2001:db8::/32"]))
        changed = self.value("export", "edit", "/projects", "--read-write", "--anonuid", "1234")
        self.assertEqual((changed["read_only"], changed["anonuid"], changed["clients"]), (False, 1234, made["clients"]))
        self.assertEqual(self.value("export", "edit", "/projects", "--insecure")["insecure"], True)
        self.assertEqual(self.value("export", "edit", "/projects", "--secure")["insecure"], False)
        self.assertEqual(self.value("export", "edit", "/projects", "--manage-gids")["manage_gids"], True)
        self.assertEqual(self.value("export", "edit", "/projects", "--no-manage-gids")["manage_gids"], False)
        self.assertIn("--read-only", self.fails(2, "export", "edit", "/projects"))
        self.fails(6, "export", "create", "/projects")
        self.assertIn("path must be absolute", self.fails(1, "export", "create", "relative"))
        self.fails(2, "export", "remove", "/projects")
        self.assertEqual(self.cli("export", "remove", "/projects", "--yes").returncode, 0)
        self.assertNotIn("/projects", [export["path"] for export in self.value("export", "list")])

    def test_a_file_its_client_and_its_layout(self):
        file = self.value("file", "show", "/held")
        self.assertEqual(file["size"], MIB)
        (client,) = [each for each in self.value("client", "list") if each["layouts"] > 0]
        layouts = self.value("layout", "list", "--path", "/held")
        self.assertEqual({layout["client"] for layout in layouts}, {client["id"]})
        self.assertTrue(self.value("layout", "show", layouts[0]["id"])["grants"])
        again = self.value("layout", "list", "--client", client["id"], "--inode", file["inode"])
        self.assertEqual([layout["id"] for layout in again], [layout["id"] for layout in layouts])
        self.fails(5, "file", "show", "/no/such/file")
        self.fails(2, "layout", "revoke")

    def test_a_revoked_layout_is_gone_and_the_file_goes_on(self):
        other = OpenFile(self.mount / "revoked")
        try:
            other.write(b"a" * MIB)
            other.fsync()
            gone = self.value("layout", "revoke", "--path", "/revoked", "--yes")
            self.assertGreaterEqual(gone["grants"], 1)
            self.assertEqual(self.value("layout", "list", "--path", "/revoked"), [])
            other.write(b"b" * MIB)
            other.fsync()
            self.assertEqual(other.read(MIB), b"b" * MIB)
        finally:
            other.close()

    def test_fewer_events_than_asked_for_are_a_list_that_ends(self):
        self.assertLess(len(self.value("event", "list", "--name", "ready")), 100)

    def test_events_are_listed_and_followed(self):
        events = self.value("event", "list", "--limit", "5")
        self.assertTrue(events)
        follow = subprocess.Popen([f"{BIN}/pnfsrdma", "--socket", f"{self.cluster.home}/console.sock", "--json", "event", "follow",
                                   "--component", "console", "--name", "changed", "--count", "1"], stdout=subprocess.PIPE, text=True)
        try:
            end = time.monotonic() + 60
            while follow.poll() is None and time.monotonic() < end:
                self.cli("export", "create", "/watched")
                self.cli("export", "remove", "/watched", "--yes")
                time.sleep(0.3)
            self.assertEqual(follow.wait(timeout=60), 0)
            self.assertEqual(json.loads(follow.stdout.read())["name"], "changed")
        finally:
            follow.kill()
            follow.wait()
            follow.stdout.close()

    def test_configuration(self):
        before = self.value("config", "show")["settings"]["log_level"]
        self.assertEqual(self.value("config", "set", "log_level", "debug")["value"], "debug")
        self.assertEqual(self.value("config", "reset", "log_level")["value"], before["value"])
        self.fails(1, "config", "set", "log_level", "loud")
        complaint = self.fails(1, "config", "set", "lease_seconds", "10")
        self.assertIn("lease_seconds is read when the server starts", complaint)
        self.assertIn("restart pnfsrdma-mdsd", complaint)
        self.assertIn("did you mean log_level?", self.fails(5, "config", "set", "log_levl", "debug"))

    def test_users_tokens_and_the_network(self):
        self.cli("setup", given=PASSWORD + "\n")  # once
        self.assertIn("admin", [user["name"] for user in self.value("user", "list")])
        self.fails(6, "user", "create", "admin", "--role", "admin", given=PASSWORD + "\n")
        self.value("user", "create", "eve", "--role", "operator", given=PASSWORD + "\n")
        self.assertEqual(self.value("user", "edit", "eve", "--role", "viewer")["role"], "viewer")
        secret = self.cli("token", "create", "test", "--role", "viewer")
        self.assertEqual(secret.returncode, 0, secret.stderr)
        path = self.cluster.home / "token"
        path.write_text(secret.stdout)
        network = ["--server", f"https://127.0.0.1:{self.cluster.console_port}", "--token-file", path]
        self.assertIn("others may read it", self.fails(4, *network, "brick", "list", socket=False))
        path.chmod(0o600)
        self.assertIn("not trusted", self.fails(3, *network, "brick", "list", socket=False))
        self.assertEqual(len(self.value(*network, "--insecure", "brick", "list", socket=False)), 1)
        self.fails(4, *network, "--insecure", "export", "create", "/x", socket=False)
        self.fails(4, "--server", f"https://127.0.0.1:{self.cluster.console_port}", "--insecure", "brick", "list", socket=False)
        certificate = next(self.cluster.home.rglob("certificate.pem"))
        self.assertEqual(len(self.value(*network, "--ca", certificate, "brick", "list", socket=False)), 1)
        self.assertEqual(self.cli("token", "remove", "test", "--yes").returncode, 0)
        self.fails(4, *network, "--insecure", "brick", "list", socket=False)
        self.assertEqual(self.cli("user", "remove", "eve", "--yes").returncode, 0)
        self.assertTrue(self.value("audit", "list"))

    def test_words_that_are_not_known_are_answered_with_those_that_are(self):
        self.assertIn('did you mean "--watch"?', self.fails(2, "stat", "--wach"))
        self.assertIn('did you mean "brick"?', self.fails(2, "brik", "list"))
        self.assertIn("/extra", self.fails(2, "brick", "list", "/extra"))

    def test_ids_are_short_and_completed(self):
        (brick,) = self.value("brick", "list")
        self.assertEqual(self.value("brick", "show", brick["id"][:2])["id"], brick["id"])
        path = brick["address"].removeprefix("unix:")
        self.assertEqual(self.value("brick", "show", path)["id"], brick["id"])
        (layout, *_) = self.value("layout", "list", "--path", "/held")
        if len(self.value("layout", "list")) == 1:
            self.assertEqual(self.value("layout", "show", layout["id"][:3])["layout"]["id"], layout["id"])
        socket = ["--socket", f"{self.cluster.home}/console.sock"]
        ask = lambda *words: self.cli("completion", "words", "--", *socket, *words, socket=False).stdout
        completed = lambda *words: [line.split("\t")[0] for line in ask(*words).splitlines()]
        self.assertEqual(completed("brick", "show", ""), [brick["id"]])
        self.assertEqual(completed("config", "set", "log"), ["log_level"])
        self.assertEqual(completed("layout", "show", ""), [each["id"] for each in self.value("layout", "list")])

    def test_nobody_there(self):
        complaint = self.fails(3, "--server", "https://no.such.host.invalid", "health", socket=False)
        self.assertIn("cannot be resolved", complaint)
        self.fails(3, "--socket", "/no/such/socket", "brick", "list", socket=False)
        self.fails(2, "brick")
        self.fails(2, "brick", "nonsense")

    def test_at_a_terminal_the_name_has_to_be_typed(self):
        self.cli("export", "create", "/typed")
        self.assertEqual(self.at_terminal(["export", "remove", "/typed"], "wrong\n"), 1)
        self.assertIn("/typed", [export["path"] for export in self.value("export", "list")])
        self.assertEqual(self.at_terminal(["export", "remove", "/typed"], "/typed\n"), 0)
        self.assertNotIn("/typed", [export["path"] for export in self.value("export", "list")])

    def at_terminal(self, arguments, typed):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([f"{BIN}/pnfsrdma", "--socket", f"{self.cluster.home}/console.sock", *arguments],
                                   stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        end = time.monotonic() + 60
        while b"to go on" not in shown and time.monotonic() < end:
            if select.select([ours], [], [], 0.5)[0]:
                shown += os.read(ours, 4096)
        os.write(ours, typed.encode())
        while process.poll() is None:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    os.read(ours, 4096)
                except OSError:
                    break  # the terminal's other end is closed
        code = process.wait(timeout=30)
        os.close(ours)
        return code


class Expel(unittest.TestCase):
    def test_an_expelled_client_comes_back_as_a_new_one(self):
        with Cluster(BIN, pool_size="64M", durability="process") as cluster:
            cluster.start_all()
            mount = cluster.mount()
            (mount / "file").write_text("before")
            socket = ["--socket", f"{cluster.home}/console.sock"]
            ask = lambda *words: subprocess.run([f"{BIN}/pnfsrdma", *socket, "--json", *words], capture_output=True,
                                                text=True, timeout=120)
            (client,) = json.loads(ask("client", "list").stdout)
            expelled = ask("client", "expel", client["id"], "--yes")
            self.assertEqual(expelled.returncode, 0, expelled.stderr)
            wait_until(lambda: (mount / "file").read_text() == "before", 60, "the mount has recovered")
            (again,) = json.loads(ask("client", "list").stdout)
            self.assertNotEqual(again["id"], client["id"])
            mount.unmount()


if __name__ == "__main__":
    unittest.main()
