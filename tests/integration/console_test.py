#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The console of real daemons, with a real mount at work: who holds what is seen, taken away, and comes back.

usage: console_test.py BIN_DIRECTORY
"""
import json
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import time
import unittest

from cluster import Cluster, OpenFile, wait_until
from console_client import Console

BIN = sys.argv.pop(1)
MIB = 1 << 20
PASSWORD = "correct horse battery"


class ConsoleOfRealDaemons(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(BIN, lease_seconds=10).start_all()
        self.addCleanup(self.cluster.close)
        self.root = Console(self.cluster.home / "console.sock")

    def file_with_layout(self, mount, name="held"):
        """Held open: its layout stays."""
        held = OpenFile(mount / name)
        self.addCleanup(held.process.shutdown)
        held.write(b"x" * MIB)
        held.fsync()
        held.write(b"y" * 4096)  # under the layout
        return held

    def layouts(self, path):
        answer = self.root.get(f"/layouts?path={path}")
        return answer.json["items"] if answer.status == 200 else []

    def test_first_start_and_password(self):
        mode = os.stat(self.cluster.home / "console.sock").st_mode
        self.assertEqual(stat.S_IMODE(mode), 0o600)
        remote = Console(self.cluster.console_port)
        setup = remote.get("/setup").json
        self.assertTrue(setup["needed"])
        self.assertEqual(stat.S_IMODE(os.stat(setup["token_file"]).st_mode), 0o600)
        with open(setup["token_file"], encoding="ascii") as file:
            token = file.read().strip()
        self.assertNotIn(token, self.cluster.log("mds"))
        self.assertIn(setup["token_file"], self.cluster.log("mds"))
        self.assertEqual(remote.get("/clients").status, 401)
        self.assertEqual(remote.request("POST", "/setup", {"token": "x" * 43, "password": PASSWORD}).status, 403)
        self.assertEqual(remote.request("POST", "/setup", {"token": token, "password": PASSWORD}).status, 201)
        self.assertFalse(os.path.exists(setup["token_file"]))
        wrong = remote.request("POST", "/session", {"user": "eve\" level=\"error", "password": "nonsense-nonsense"})
        self.assertEqual(wrong.status, 401)
        self.assertIn('login-failed user="eve? level=?error" origin=127.0.0.1', self.cluster.log("mds"))
        admin = remote.log_in("admin", PASSWORD)
        self.assertEqual(admin.get("/session").json["role"], "admin")
        # Users, tokens and the audit log are there after a crash; sessions are not.
        made = admin.request("POST", "/tokens", {"name": "scraper", "role": "viewer"})
        self.assertEqual(made.status, 201, made.text)
        self.cluster.kill("mds")
        self.cluster.start_mds()
        self.assertEqual(admin.get("/session").status, 401)
        scraper = Console(self.cluster.console_port, {"Authorization": "Bearer " + made.json["secret"]})
        self.assertEqual(scraper.get("/metrics", prefix="").status, 200)
        self.assertEqual(scraper.get("/users").status, 403)
        self.assertEqual(remote.log_in("admin", PASSWORD).get("/users").status, 200)
        actions = [entry["action"] for entry in self.root.items("/audit")]
        self.assertIn("postSetup", actions)
        self.assertIn("postToken", actions)

    def test_a_layout_is_seen_revoked_and_comes_back(self):
        mount = self.cluster.mount()
        held = self.file_with_layout(mount)
        wait_until(lambda: self.layouts("/held"), 60, "the layout is in the list")
        layout = self.layouts("/held")[0]
        self.assertEqual(layout["iomode"], "read-write")
        self.assertGreaterEqual(layout["writable_bytes"], MIB)
        self.assertEqual(layout["path"], "/held")
        client = self.root.get(f"/clients/{layout['client']}").json
        self.assertEqual(client["host"], socket.gethostname())
        self.assertRegex(client["name"], f"^{re.escape(socket.gethostname())}-[0-9a-f]{{6}}$")
        self.assertEqual(client["mount_point"], str(mount.path))
        self.assertEqual(layout["client_name"], client["name"])
        self.assertEqual(client["sessions"][0]["callbacks"], "up")
        detail = self.root.get(f"/layouts/{layout['id']}").json
        self.assertEqual(sum(g["length"] for g in detail["items"]), layout["bytes"])
        begun = time.monotonic()
        revoked = self.root.request("DELETE", f"/layouts/{layout['id']}")
        self.assertEqual(revoked.status, 200, revoked.text)
        self.assertGreaterEqual(revoked.json["grants"], 1)
        self.assertLess(time.monotonic() - begun, self.cluster.lease_seconds, "the client was not waited for")
        self.assertEqual(self.root.get(f"/layouts/{layout['id']}").status, 404)
        # The client recovers by itself, and what it writes is there.
        held.write(b"z" * MIB)
        held.fsync()
        self.assertEqual((mount / "held").read_bytes()[:MIB], b"z" * MIB)
        wait_until(lambda: self.layouts("/held"), 20, "a layout is held again")
        held.close()

    def test_an_expelled_client_is_gone_and_may_come_back_anew(self):
        mount = self.cluster.mount()
        held = self.file_with_layout(mount)
        before = self.root.items("/clients")
        self.assertEqual(len(before), 1)
        self.assertEqual(before[0]["opens"], 1)
        answer = self.root.request("DELETE", f"/clients/{before[0]['id']}")
        self.assertEqual(answer.status, 204, answer.text)
        self.assertIn(before[0]["name"], self.root.items("/audit")[0]["summary"])
        self.assertIn(f"name={before[0]['name']}", self.cluster.log("mds"))
        self.assertEqual(self.root.get(f"/clients/{before[0]['id']}").status, 404)
        self.assertFalse([l for l in self.root.items("/layouts") if l["client"] == before[0]["id"]])
        # Whatever becomes of the file that was open, the mount goes on.
        (mount / "another").write_bytes(b"x")
        wait_until(lambda: len(self.root.items("/clients")) == 1, 60, "the client is there anew")
        self.assertNotEqual(self.root.items("/clients")[0]["id"], before[0]["id"])
        self.assertEqual(self.root.items("/clients")[0]["name"], before[0]["name"], "one mount, one name")
        del held

    def test_a_brick_address_where_nothing_listens_is_refused_at_once(self):
        for address, why in ((f"unix:{self.cluster.home}/nowhere.sock", "No such file or directory"),
                             ("tcp:127.0.0.1:1", "Connection refused")):
            begun = time.monotonic()
            refused = self.root.request("POST", "/bricks", {"address": address})
            self.assertEqual((refused.status, refused.problem), (422, "brick-unreachable"), refused.text)
            self.assertLess(time.monotonic() - begun, 2)
            self.assertIn(why, refused.json["detail"])
        self.assertEqual(len(self.root.items("/bricks")), 1)
        self.assertEqual(self.root.get("/health").json["status"], "ok")

    def test_the_numbers_are_those_of_df_and_of_the_brick(self):
        mount = self.cluster.mount()
        held = self.file_with_layout(mount)
        wait_until(lambda: self.layouts("/held"), 60, "the layout is in the list")
        (mount / "other").write_bytes(os.urandom(5 * MIB))

        def agree():
            df = os.statvfs(mount.path)
            brick = self.root.items("/bricks")[0]
            if brick["capacity_bytes"] == 0:  # not told by the brick yet
                return False
            self.assertEqual(df.f_blocks * df.f_frsize, brick["capacity_bytes"])
            return (df.f_blocks - df.f_bfree) * df.f_frsize == brick["used_bytes"]
        wait_until(agree, 20, "df and the console say the same is used")
        self.assertGreaterEqual(self.root.items("/bricks")[0]["used_bytes"], 6 * MIB)

        # The brick lists what it has; the metadata, the map and the brick's own numbers have as many blocks.
        brick = self.root.items("/bricks")[0]
        job = self.root.request("POST", f"/bricks/{brick['id']}/check").json
        wait_until(lambda: self.root.get(f"/jobs/{job['id']}").json["state"] != "running", 60, "the check ends")
        checked = self.root.get(f"/jobs/{job['id']}").json
        self.assertEqual(checked["state"], "done", checked)
        sound = re.match(r"(\d+) blocks in use, 0 missing, 0 in no file, 0 damaged", checked["message"])
        in_use = int(sound.group(1))
        brick = self.root.items("/bricks")[0]
        self.assertEqual(brick["blocks"] - brick["free_blocks"], in_use)
        runs = self.root.get(f"/bricks/{brick['id']}/blocks?limit=10000").json["runs"]
        self.assertEqual(sum(run["count"] for run in runs if run["state"] != "free"), in_use)

        # What is reached: by the map, by the layouts and by the client.
        by_map = sum(grant["bytes"] for run in runs for grant in run["grants"])
        layouts = self.root.items("/layouts")
        self.assertEqual(by_map, sum(layout["bytes"] for layout in layouts))
        self.assertEqual(by_map, self.root.items("/clients")[0]["bytes"])
        self.assertEqual(sum(run["bytes"] for run in runs), by_map, "one client holds all")
        held.close()

    def test_what_is_shown_as_in_force_is_in_force(self):
        def settings():
            return self.root.get("/configuration").json["settings"]
        self.assertEqual([one["path"] for one in settings()["exports"]["value"]], ["/"])
        before = settings()["exports"]["source"]
        self.assertNotEqual(before, "store")
        self.assertEqual(self.root.request("POST", "/exports", {"path": "/data", "read_only": True}).status, 201)
        now = settings()["exports"]
        self.assertEqual([(one["path"], one["read_only"]) for one in now["value"]], [("/", False), ("/data", True)])
        self.assertEqual(now["source"], "store")
        self.assertEqual(settings()["bricks"]["value"], [brick["address"] for brick in self.root.items("/bricks")])

    def test_a_nested_export_says_beforehand_who_loses_the_path(self):
        mount = self.cluster.mount()
        (mount / "data").mkdir()
        name = self.root.items("/clients")[0]["name"]
        effect = self.root.get("/exports/effect?path=/data&clients=192.0.2.0/24").json
        self.assertEqual((effect["inside"], effect["clients"], effect["losing"]), ("/", 1, [name]))
        self.assertEqual(self.root.get("/exports/effect?path=/data").json["losing"], [])
        command = [f"{BIN}/pnfsrdma", "--socket", str(self.cluster.home / "console.sock"), "export", "create",
                   "/data", "--clients", "192.0.2.0/24"]
        asked = subprocess.run(command, input="no\n", capture_output=True, text=True, timeout=60)
        self.assertNotEqual(asked.returncode, 0)
        self.assertIn(f"1 of them may not mount /data, and will no longer find it: {name}.",
                      asked.stdout + asked.stderr)
        self.assertEqual(len(self.root.items("/exports")), 1, "nothing was made")
        made = self.root.request("POST", "/exports", {"path": "/data", "clients": ["192.0.2.0/24"]})
        self.assertIn(f"and will no longer find it: {name}.", made.json["warning"])
        self.assertRegex(self.cluster.log("mds"), r"handles-end export=/ clients=1 losing=1 ")

    def test_exports_change_at_run_time_and_stay(self):
        mount = self.cluster.mount()
        (mount / "data").mkdir()
        made = self.root.request("POST", "/exports", {"path": "/data", "clients": ["127.0.0.0/8"]})
        self.assertEqual(made.status, 201, made.text)
        self.assertTrue(made.json["directory_exists"])
        self.assertEqual(self.root.request("POST", "/exports", {"path": "/data"}).problem, "conflict")
        path = f"/exports/{made.json['id']}"
        self.assertEqual(self.root.request("PUT", path, {"path": "/data", "read_only": True}).status, 428)
        etag = self.root.get(path).headers["etag"]
        changed = self.root.request("PUT", path, {"path": "/data", "read_only": True, "root_squash": False},
                                    {"If-Match": etag})
        self.assertEqual(changed.status, 200, changed.text)
        self.assertEqual(self.root.request("PUT", path, {"path": "/data"}, {"If-Match": etag}).status, 412)
        # Whoever looks the directory up from now on crosses into the new export.
        second = self.cluster.mount()
        with self.assertRaises(OSError) as refused:
            (second / "data" / "new").write_bytes(b"x")
        self.assertEqual(refused.exception.errno, 30)  # EROFS
        second.unmount()
        self.cluster.stop("mds")
        self.cluster.start_mds()
        self.assertEqual([(e["path"], e["read_only"], e["source"]) for e in self.root.items("/exports")],
                         [("/", False, "store"), ("/data", True, "store")])
        self.assertEqual(self.root.request("DELETE", path).status, 204)
        self.assertEqual(self.root.request("DELETE", path).status, 404)
        # Its id is not given again, and the mount of "/" goes on, though not by the handles it had.
        again = self.root.request("POST", "/exports", {"path": "/data", "root_squash": False})
        self.assertGreater(again.json["id"], made.json["id"])
        self.assertIn("Clients of / must reopen their files", again.json["warning"])
        (mount / "data" / "new").write_bytes(b"x")

    def test_events_stream_and_the_log_level_changes(self):
        lines = []
        connection = self.root.connection()
        connection.request("GET", "/api/v1/events/stream?component=console")
        response = connection.getresponse()
        self.assertEqual(response.getheader("Content-Type"), "text/event-stream")

        def read():
            try:
                for line in response:
                    lines.append(line.decode())
            except (OSError, ValueError):
                pass  # closed below
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        etag = self.root.get("/configuration").headers["etag"]
        changed = self.root.request("PATCH", "/configuration", {"log_level": "debug"}, {"If-Match": etag})
        self.assertEqual(changed.json["settings"]["log_level"], {"value": "debug", "source": "store", "run_time": True})
        wait_until(lambda: any('"name":"changed"' in l and "patchConfiguration" in l for l in lines), 60,
                   "the change is in the stream")
        self.cluster.stop("mds")  # ends in order though a stream is open
        self.cluster.start_mds()
        self.assertEqual(self.root.get("/configuration").json["settings"]["log_level"]["value"], "debug")
        back = self.root.request("PATCH", "/configuration", {"log_level": None}, {"If-Match": "*"})
        self.assertEqual(back.json["settings"]["log_level"]["source"], "default")
        connection.close()

    def test_throughput_and_health(self):
        mount = self.cluster.mount()
        for i in range(20):
            (mount / f"f{i}").write_bytes(b"x" * 8192)
        sampled = lambda: self.root.get("/throughput?seconds=60").json["samples"]
        wait_until(lambda: sum(s["operations"] for s in sampled()) > 20, 20, "20 files' operations are in the samples")
        samples = sampled()
        self.assertTrue(any(s["latency_us"]["p99"] > 0 for s in samples))
        self.assertEqual([s["sequence"] for s in samples], sorted(s["sequence"] for s in samples))
        health = self.root.get("/health").json
        self.assertEqual(health["status"], "ok", json.dumps(health))
        text = self.root.get("/metrics", prefix="").text
        self.assertIn('pnfsrdma_mds_operations_total{operation="OPEN"}', text)
        # The turns of both control loops; the brick's are asked for once a second.
        self.assertRegex(text, r"pnfsrdma_mds_loop_turn_seconds_count [1-9]")
        self.assertTrue(any(check["name"] == "loop" for check in health["checks"]), json.dumps(health))
        wait_until(lambda: re.search(r'pnfsrdma_brick_loop_turn_seconds_count{brick="[^"]+"} [1-9]',
                                     self.root.get("/metrics", prefix="").text),
                   20, "the brick's turns are counted")

    def test_a_console_that_cannot_listen_does_not_keep_clients_from_their_files(self):
        self.cluster.stop("mds")
        config = json.loads((self.cluster.home / "mds.json").read_text())
        config["console"]["listen"] = [f"127.0.0.1:{self.cluster.data_port}"]  # the brick's
        self.cluster.write_config("mds", config)
        self.cluster.start_mds()
        self.assertIn("console: not-listening", self.cluster.log("mds"))
        mount = self.cluster.mount()
        (mount / "file").write_bytes(b"x")


if __name__ == "__main__":
    unittest.main()
