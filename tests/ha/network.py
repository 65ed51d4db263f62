# SPDX-License-Identifier: Apache-2.0
"""Hosts on one machine: a network namespace each, joined by a bridge in one more. Nothing of the machine's own network is touched.

A host that is cut off loses what it sends and what is sent to it, without a word, as behind a router that fails.
"""
import ctypes
import os
import subprocess
import threading

SWITCH = "switch"
SUBNET = "10.87.0"  # inside the namespaces only
NOBODY = "02:00:00:00:ff:ff"
BLOCKING, FORWARDING = 0, 3  # of a port of a bridge
CLONE_NEWNET = 0x40000000


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True, timeout=60).stdout


def namespaces(prefix):
    return [name for name in (line.split()[0] for line in run("ip", "netns", "list").splitlines()) if name.startswith(f"{prefix}-")]


def remove(prefix):
    """Ends all processes in the namespaces of that prefix and removes these; links and bridge go with them."""
    for name in namespaces(prefix):
        for process in run("ip", "netns", "pids", name, check=False).split():
            subprocess.run(["kill", "-KILL", process], check=False, capture_output=True)
        run("ip", "netns", "delete", name, check=False)


def why_not():
    """Why this machine cannot have such hosts, or None."""
    if os.geteuid() != 0:
        return "root is needed for network namespaces"
    if not os.path.exists("/dev/fuse"):
        return "/dev/fuse is missing"
    probe = subprocess.run(["unshare", "--net", "ip", "link", "add", "name", "probe", "type", "bridge"], capture_output=True,
                           text=True, check=False)
    return None if probe.returncode == 0 else f"no bridge in a network namespace: {probe.stderr.strip()}"


class Network:
    def __init__(self, prefix, hosts):
        self.prefix = prefix
        self.numbers = {host: number for number, host in enumerate(hosts, 11)}
        remove(prefix)
        for host in (SWITCH, *hosts):
            run("ip", "netns", "add", self.namespace(host))
        self.set_up(SWITCH, ["link add name bridge type bridge", f"address add {SUBNET}.1/24 dev bridge", "link set bridge up"])
        for host in hosts:
            self.set_up(SWITCH, [f"link add name {host} type veth peer name eth0 netns {self.namespace(host)}",
                                 f"link set {host} master bridge up"])
            # Neighbours are known, so that nobody learns from a silent one that a host is away.
            self.set_up(host, ["link set lo up", f"link set eth0 address {self.hardware(host)} up",
                               f"address add {self.address(host)}/24 dev eth0",
                               *(self.neighbour(other, self.hardware(other)) for other in hosts if other != host)])

    def namespace(self, host):
        return f"{self.prefix}-{host}"

    def address(self, host):
        return f"{SUBNET}.{self.numbers[host]}"

    def hardware(self, host):
        return f"02:00:00:00:00:{self.numbers[host]:02x}"

    def neighbour(self, host, hardware):
        return f"neighbour replace {self.address(host)} lladdr {hardware} dev eth0 nud permanent"

    def set_up(self, host, commands):
        subprocess.run(["ip", "-netns", self.namespace(host), "-batch", "-"], input="\n".join(commands), check=True,
                       capture_output=True, text=True, timeout=60)

    def command(self, host, *command):
        """What runs the command on that host: with its network, and the file systems of the machine."""
        return ["nsenter", f"--net=/run/netns/{self.namespace(host)}", *command]

    def cut(self, host):
        run("bridge", "-netns", self.namespace(SWITCH), "link", "set", "dev", host, "state", str(BLOCKING))

    def join(self, host):
        run("bridge", "-netns", self.namespace(SWITCH), "link", "set", "dev", host, "state", str(FORWARDING))

    def cut_between(self, host, others):
        self.set_hardware(host, others, lambda _: NOBODY)

    def silence(self, host, others):
        """What it sends to them is lost, and nothing else."""
        self.set_up(host, [self.neighbour(other, NOBODY) for other in others])

    def join_between(self, host, others):
        self.set_hardware(host, others, self.hardware)

    def set_hardware(self, host, others, hardware):
        self.set_up(host, [self.neighbour(other, hardware(other)) for other in others])
        for other in others:
            self.set_up(other, [self.neighbour(host, hardware(host))])

    def inside(self, host, function):
        """What the function returns on that host: sockets that it makes are there."""
        outcome = []

        def enter():
            try:
                with open(f"/run/netns/{self.namespace(host)}") as namespace:
                    if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
                        raise OSError(ctypes.get_errno(), "setns")
                outcome.append((function(), None))
            except Exception as error:  # the caller's
                outcome.append((None, error))
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        value, error = outcome[0]
        if error:
            raise error
        return value

    def close(self):
        remove(self.prefix)
