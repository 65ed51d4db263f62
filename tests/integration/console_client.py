# SPDX-License-Identifier: Apache-2.0
"""The REST API as a program uses it: over the Unix socket as root, or over HTTPS with a cookie or a token."""
import http.client
import json
import socket
import ssl


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.unix_path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.unix_path)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.text = response.read().decode()

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def problem(self):
        """The name of the problem's type."""
        return self.json["type"].rsplit("/", 1)[-1]


class Console:
    """`where`: the path of the Unix socket, or a port of 127.0.0.1 for HTTPS."""

    def __init__(self, where, headers=None, timeout=60):
        self.where, self.headers, self.timeout = where, dict(headers or {}), timeout

    def connection(self):
        if isinstance(self.where, int):
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return http.client.HTTPSConnection("127.0.0.1", self.where, timeout=self.timeout, context=context)
        return UnixConnection(self.where, self.timeout)

    def request(self, method, path, body=None, headers=None, prefix="/api/v1"):
        connection = self.connection()
        try:
            sent = {**self.headers, **(headers or {})}
            data = None
            if body is not None:
                data = body if isinstance(body, (bytes, str)) else json.dumps(body)
                data = data if isinstance(data, bytes) else data.encode()
                sent.setdefault("Content-Type", "application/json")
            connection.request(method, prefix + path, data, sent)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def items(self, path):
        """All items of a list, over its pages."""
        items, cursor = [], None
        while True:
            joint = "&" if "?" in path else "?"
            answer = self.get(path + (f"{joint}cursor={cursor}" if cursor else ""))
            assert answer.status == 200, answer.text
            items += answer.json["items"]
            cursor = answer.json["next_cursor"]
            if not cursor or not answer.json["items"]:
                return items

    def log_in(self, user, password):
        """A Console with the cookie and CSRF token of a session, or the refusal."""
        answer = self.request("POST", "/session", {"user": user, "password": password})
        if answer.status != 201:
            return answer
        return Console(self.where, {"Cookie": answer.headers["set-cookie"].split(";")[0],
                                    "X-CSRF-Token": answer.json["csrf_token"]})
