#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The REST API under requests made from its own document, right and wrong: every answer is one the document has, none is
a 500, none takes long, and a refused request changes nothing.

usage: api_fuzz_test.py BIN_DIRECTORY [--seed N] [--requests N]
"""
import json
import os
import pathlib
import random
import re
import sys
import time
import unittest
import urllib.parse

from cluster import Cluster, wait_until
from console_client import Console

BIN = sys.argv.pop(1)


def option(name, default):
    if name not in sys.argv:
        return default
    at = sys.argv.index(name)
    value = int(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    return value


SEED = option("--seed", 1)
REQUESTS = option("--requests", int(os.environ.get("PNFSRDMA_API_FUZZ_REQUESTS", "1500")))
DOCUMENT = json.loads((pathlib.Path(__file__).parents[2] / "server/console/openapi.json").read_text())
ANSWER_SECONDS = 30
# What may not be done to the server under test: its streams do not end, and ten wrong passwords stop the fuzzer.
LEFT_OUT = {"streamEvents", "postSession", "postSetup", "putPassword"}
# Metrics may be that old.
SNAPSHOT_SECONDS = 0.3
# What a refused request must not have changed.
STATE = ["/users", "/tokens", "/exports", "/configuration"]


def resolve(schema):
    while "$ref" in schema:
        node = DOCUMENT
        for part in schema["$ref"][2:].split("/"):
            node = node[part]
        schema = node
    return schema


def matching(pattern, choose):
    """A text for the patterns of the document: alternatives, classes and counts are all they use."""
    made = ""
    for item in re.findall(r"\[([^\]]+)\](?:\{(\d+)(?:,(\d+))?\})?|([^\^\$\[\]\{\}])", pattern.strip("^$").split("|")[0]):
        letters, least, most, literal = item
        if literal:
            made += "" if literal in "()" else literal
            continue
        letters = "".join("".join(map(chr, range(ord(a), ord(b) + 1))) for a, b in re.findall(r"(.)-(.)", letters)) or letters
        count = int(least or 1) if not most else choose.randint(int(least), min(int(most), int(least) + 6))
        made += "".join(choose.choice(letters) for _ in range(count))
    return made


class Maker:
    """Values that a schema allows, and values that it does not."""

    def __init__(self, choose, known):
        self.choose, self.known = choose, known

    def right(self, schema, name=""):
        schema = resolve(schema)
        if self.known.get(name) and self.choose.random() < 0.7:
            return self.choose.choice(self.known[name])
        if "enum" in schema:
            return self.choose.choice(schema["enum"])
        kind = schema.get("type", "string")
        if isinstance(kind, list):
            kind = self.choose.choice(kind)
        if kind == "object":
            required = schema.get("required", [])
            return {key: self.right(value, key) for key, value in schema.get("properties", {}).items()
                    if key in required or self.choose.random() < 0.5}
        if kind == "array":
            return [self.right(schema["items"], name) for _ in range(self.choose.randint(0, 3))]
        if kind == "integer":
            least = schema.get("minimum", 0)
            return self.choose.choice([least, schema.get("maximum", least + 100), least + self.choose.randint(0, 50)])
        if kind in ("boolean", "null"):
            return None if kind == "null" else self.choose.random() < 0.5
        if "pattern" in schema:
            return matching(schema["pattern"], self.choose)
        length = self.choose.randint(schema.get("minLength", 0), min(schema.get("maxLength", 20), schema.get("minLength", 0) + 20))
        return "/" + "".join(self.choose.choice("abäß/. \\\"<%") for _ in range(max(length - 1, 0)))

    def wrong(self):
        return self.choose.choice([None, True, -1, 0, 2**64, 1e308, 0.5, "", "x" * 5000, "\x00", "../../etc", "ÿ\ud7ff", [], {}, [[]],
                                   {"a": {}}, "' OR 1=1", "-1", "NaN", "00000000-0000-0000-0000-000000000000"])


class ApiFuzz(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(BIN).start_all()
        self.addCleanup(self.cluster.close)
        self.root = Console(self.cluster.home / "console.sock", timeout=ANSWER_SECONDS)
        self.choose = random.Random(SEED)
        mount = self.cluster.mount()
        (mount / "data").mkdir()
        (mount / "data" / "file").write_bytes(b"x" * (1 << 20))
        self.known = {"path": ["/", "/data", "/data/file"], "name": ["admin", "fuzz"], "id": [1, 2]}
        # What the console shows is of a moment ago: nothing may still be on its way when the first state is kept.
        wait_until(lambda: all(brick["state"] == "ready" for brick in self.root.items("/bricks")), ANSWER_SECONDS,
                   "the console shows the brick as ready")
        bricks = [brick["id"] for brick in self.root.items("/bricks")]
        self.known.update({"brick": bricks, "confirm": bricks, "inode": [2, 3, 4],
                           "client": [client["id"] for client in self.root.items("/clients")]})
        self.maker = Maker(self.choose, self.known)

    def state(self):
        kept = {}
        for path in STATE:
            answer = self.root.get(path)
            self.assertEqual(answer.status, 200, path)
            kept[path] = answer.json
        # Layouts come and go with what the mount does; only the server takes them by force.
        kept["clients"] = [client["id"] for client in self.root.items("/clients")]
        kept["jobs"] = [job["id"] for job in self.root.items("/jobs")]
        kept["bricks"] = [(brick["id"], brick["state"]) for brick in self.root.items("/bricks")]
        metrics = self.root.get("/metrics", prefix="").text
        kept["revocations"] = re.findall(r"^pnfsrdma_mds_revocations_total (.*)$", metrics, re.M)
        for token in kept["/tokens"]["items"]:
            token["last_used"] = None
        return kept

    def request_of(self, path, method, operation):
        """(path, body, headers): mostly as the document wants it, with now and then one thing wrong."""
        broken = self.choose.random() < 0.5
        target, query = path, []
        parameters = operation.get("parameters", [])
        spoiled = self.choose.randrange(len(parameters) + 2) if broken else -1
        headers = {}
        for index, parameter in enumerate(parameters):
            value = self.maker.wrong() if index == spoiled else self.maker.right(parameter["schema"], parameter["name"])
            text = quote(value if isinstance(value, str) else json.dumps(value))
            if parameter["in"] == "path":
                target = target.replace("{%s}" % parameter["name"], text or "%20")
            elif parameter["in"] == "query" and (parameter.get("required") or self.choose.random() < 0.5):
                query.append(f"{parameter['name']}={text}")
            elif parameter["in"] == "header" and self.choose.random() < 0.7:
                headers[parameter["name"]] = "*" if self.choose.random() < 0.8 else '"stale"'
        if spoiled == len(parameters):
            query.append("unknown=1")
        body = None
        if "requestBody" in operation:
            body = self.maker.right(operation["requestBody"]["content"]["application/json"]["schema"])
            if spoiled == len(parameters) + 1:
                body = self.spoil(body)
        return target + ("?" + "&".join(query) if query else ""), body, headers

    def spoil(self, body):
        how = self.choose.randrange(6)
        if how == 0:
            return self.maker.wrong()
        if how == 1:
            return json.dumps(body)[:-1]
        if how == 2:
            return b"\xff\xfe" + json.dumps(body).encode()
        if how == 3:
            return "[" * 20000
        if how == 4:
            return {**body, "unknown": 1}
        key = self.choose.choice(list(body) or ["x"])
        return {**body, key: self.maker.wrong()}

    def test_requests_from_the_document(self):
        operations = [(path, method, operation) for path, methods in DOCUMENT["paths"].items()
                      for method, operation in methods.items() if operation["operationId"] not in LEFT_OUT]
        counts, slowest = {}, 0
        before = self.state()
        for number in range(REQUESTS):
            path, method, operation = self.choose.choice(operations)
            target, body, headers = self.request_of(path, method, operation)
            what = f"request {number} of seed {SEED}: {method.upper()} {target} {str(body)[:300]} {headers}"
            begun = time.monotonic()
            answer = self.root.request(method.upper(), target, body, headers)
            slowest = max(slowest, time.monotonic() - begun)
            counts[answer.status] = counts.get(answer.status, 0) + 1
            self.assertLess(answer.status, 500, f"{what}\n{answer.text}")
            self.check_documented(operation, answer, what)
            if method == "get":
                continue
            after = self.state()
            if answer.status >= 400:
                self.assertEqual(after, before, f"refused with {answer.status}, but something changed: {what}")
            else:
                time.sleep(SNAPSHOT_SECONDS)
                after = self.state()
            before = after
        print(f"{REQUESTS} requests, seed {SEED}: {dict(sorted(counts.items()))}, slowest {slowest:.2f} s")
        for status in (200, 201, 204, 404, 422):
            self.assertIn(status, counts, "the fuzzer does not reach what it is for")

    def check_documented(self, operation, answer, what):
        # A broken path may be that of no operation, or of another one.
        if answer.status in (404, 405, 308):
            return
        self.assertIn(str(answer.status), operation["responses"], f"{what}\n{answer.text}")
        if answer.status >= 400:
            self.assertEqual(answer.headers["content-type"], "application/problem+json", what)
            self.assertIn(answer.problem, DOCUMENT["x-problems"], what)

    def test_what_is_no_http(self):
        for sent in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 40000 + b"\r\n",
                     b"POST /api/v1/exports HTTP/1.1\r\nContent-Length: 99999999999\r\nContent-Type: application/json\r\n\r\n",
                     b"POST /api/v1/exports HTTP/1.1\r\nContent-Length: -1\r\n\r\n", bytes(range(256)) * 64,
                     b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", b"GET /api/v1/version HTTP/9.9\r\n\r\n",
                     b"POST /api/v1/exports HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
                     b"Content-Length: 5\r\n\r\n0\r\n\r\n"):
            connection = self.root.connection()
            connection.connect()
            connection.sock.settimeout(ANSWER_SECONDS)
            try:
                connection.sock.sendall(sent)
                connection.sock.shutdown(1)
                said = connection.sock.recv(65536)
                self.assertNotIn(b" 50", said[:16], sent[:100])
            except (BrokenPipeError, ConnectionResetError):
                pass  # it had heard enough
            connection.close()
        self.assertEqual(self.root.get("/health/live").status, 200)


def quote(text):
    return urllib.parse.quote(text, safe="", errors="replace")


if __name__ == "__main__":
    unittest.main()
