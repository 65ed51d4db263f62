# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy whose connections can be cut: what is on the way then, to either side, is lost."""
import socket
import struct
import threading
import time


class CutProxy:
    def __init__(self, target_port, one_way_seconds=0.0005):
        self.target_port, self.delay = target_port, one_way_seconds
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.sockets = []
        self.accepted = 0
        threading.Thread(target=self.accept_loop, daemon=True).start()

    def accept_loop(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target_port))
            except OSError:  # it restarts: the client tries again
                client.close()
                continue
            with self.lock:
                self.sockets += [client, server]
                self.accepted += 1
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(source, sink), daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(1 << 20):
                time.sleep(self.delay)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self):
        with self.lock:
            for one in self.sockets:
                # Closed by a reset: nothing that is not delivered yet comes through.
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                one.close()
            self.sockets.clear()

    def close(self):
        self.listener.close()
        self.cut()
