# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that delays each direction: the network between two ends that are really on one machine.

Bytes keep their order; any number of them may be on the way at once (a delay, not a rate limit).

Proxies given the same list as `events` append to it what the client sees: TO_SERVER when its bytes arrive here, TO_CLIENT
when bytes are handed to it. round_trips() counts the waits in such a list.
"""
import collections
import select
import socket
import threading
import time

TO_SERVER, TO_CLIENT = "to server", "to client"


def round_trips(events):
    """Answers that something asked later had to wait for, and the last one: what is asked at once is one round trip."""
    return sum(1 for before, event in zip(events, events[1:]) if (before, event) == (TO_SERVER, TO_CLIENT))


class DelayProxy:
    def __init__(self, target_port, one_way_seconds, events=None):
        self.target_port, self.delay = target_port, one_way_seconds
        self.events = [] if events is None else events
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
            try:
                server = socket.create_connection(("127.0.0.1", self.target_port))
            except OSError:  # it restarts: the client tries again
                client.close()
                continue
            for s in (client, server):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, sink, event in ((client, server, TO_SERVER), (server, client, TO_CLIENT)):
                threading.Thread(target=self.pump, args=(source, sink, event), daemon=True).start()

    def pump(self, source, sink, event):
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
                if data and event == TO_SERVER:
                    self.events.append(event)
                if data:
                    waiting.append((time.monotonic() + self.delay, data))
                else:
                    open_ = False
            while waiting and waiting[0][0] - time.monotonic() < 0.0002:
                due, data = waiting[0]
                while time.monotonic() < due:
                    pass
                waiting.popleft()
                if event == TO_CLIENT:
                    self.events.append(event)
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
