# SPDX-License-Identifier: Apache-2.0
"""TCP ports for servers of tests, each given to one test only, however many run beside each other."""
import errno
import random
import socket

# Below what Linux gives to outgoing connections (net.ipv4.ip_local_port_range): one of those may have it a moment later.
PORTS = range(10000, 32000)
_reserved = []  # a socket per port: the name is free again when this process ends


def free_port():
    """A port of 127.0.0.1 where nobody listens, and which no other call in this network namespace gets while this process
    runs."""
    for port in random.sample(PORTS, 1000):
        if _reserve(port) and _is_free(port):
            return port
    raise OSError(errno.EADDRINUSE, "none of 1,000 ports is free")


def _reserve(port):
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0pnfsrdma-test-port-{port}")
    except OSError:
        name.close()
        return False
    _reserved.append(name)
    return True


def _is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
