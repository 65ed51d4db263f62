# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that delays each direction: the network between two ends that are really on one machine.

Bytes keep their order; any number of them may be on the way at once (a delay, not a rate limit).
"""
import collections
import select
import socket
import threading
import time


class DelayProxy:
    def __init__(self, target_port, one_way_seconds):
        self.target_port, self.delay = target_port, one_way_seconds
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.stopping = False
        self.thread = threading.Thread(target=self.accept_loop, daemon=True)
        self.thread.start()

    def accept_loop(self):
        while not self.stopping:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target_port))
            for s in (client, server):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(source, sink), daemon=True).start()

    def pump(self, source, sink):
        waiting = collections.deque()  # (due, bytes)
        open_ = True
        while open_ or waiting:
            timeout = max(0, waiting[0][0] - time.monotonic()) if waiting else None
            # The last fraction of a millisecond is spun: a sleeping select() may come back late.
            ready = select.select([source] if open_ else [], [], [],
                                  None if timeout is None else max(0, timeout - 0.0002))[0]
            if ready:
                try:
                    data = source.recv(1 << 20)
                except OSError:
                    data = b""
                if data:
                    waiting.append((time.monotonic() + self.delay, data))
                else:
                    open_ = False
            while waiting and waiting[0][0] - time.monotonic() < 0.0002:
                due, data = waiting[0]
                while time.monotonic() < due:
                    pass
                waiting.popleft()
                try:
                    sink.sendall(data)
                except OSError:
                    return
        try:
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.stopping = True
        self.listener.close()
