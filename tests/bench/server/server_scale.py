#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many files in our metadata server, made by the load generator: files a second from the beginning to the end, bytes of metadata
a file, memory of MDS and brick, and how long a restart of the MDS takes until its first answer.

With --walk a mount looks at all of them and removes them: `find`, `find` with the attributes of each, `rm -rf`.

With --hold the generator's clients keep the open, or the layout, of every file, and leave without a word: what another client
waits while their leases end, and the turns of the loop meanwhile.
"""
import argparse
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
import server_bench  # noqa: E402
from console_client import Console  # noqa: E402

# An RPC call without arguments: mark, xid, call, RPC 2, NFS, version 4, NULL, no credential, no verifier.
NULL_CALL = struct.pack(">11I", 0x80000000 | 40, 1, 0, 2, 100003, 4, 0, 0, 0, 0, 0)


def answers_null(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(NULL_CALL)
            return len(connection.recv(28)) > 0
    except OSError:
        return False


def bytes_below(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


class Healthy(threading.Thread):
    """A client with a connection of its own: a NULL call every 5 ms, and what it waited."""

    def __init__(self, port):
        super().__init__()
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.waited, self.ended = [], threading.Event()
        self.start()

    def run(self):
        while not self.ended.wait(0.005):
            begun = time.monotonic()
            self.connection.sendall(NULL_CALL)
            self.connection.recv(28, socket.MSG_WAITALL)
            self.waited.append(time.monotonic() - begun)

    def end(self):
        self.ended.set()
        self.join()
        self.connection.close()
        ordered = sorted(self.waited)
        return [1e3 * ordered[int(len(ordered) * share)] for share in (0.5, 0.99, 0.999)] + [1e3 * ordered[-1]]


def teardown(ours):
    """Until nobody is left whose lease has ended."""
    before, healthy = ours.turns(), Healthy(ours.nfs_port)
    console = Console(ours.home / "console.sock")
    held, begun, last = None, None, None
    while True:
        text = console.get("/metrics", prefix="").text
        opens, layouts = (int(re.search(rf"^{name} (\d+)", text, re.MULTILINE)[1])
                          for name in ("pnfsrdma_mds_opens", "pnfsrdma_mds_layouts"))
        held = held or (opens, layouts)
        if (opens, layouts) != held and begun is None:
            begun = time.monotonic()
        last = time.monotonic()
        if opens + layouts == 0:
            break
        time.sleep(0.2)
    p50, p99, p999, longest = healthy.end()
    print(f"{held[0]} opens and {held[1]} layouts of clients that left without a word, gone in {last - (begun or last):.1f} s")
    print(f"a NULL call of another client meanwhile, the wait for the lease's end included: p50 {p50:.2f} ms, p99 {p99:.2f} ms,"
          f" p99.9 {p999:.2f} ms, longest {longest:.1f} ms")
    server_bench.print_turns(before, ours.turns())


def wait_for_bricks(ours, ready_before):
    """Until a file can be given new memory."""
    while ours.log("mds").count(" brick-ready ") == ready_before:
        time.sleep(0.02)


def generate(arguments, ours, files, folders):
    with tempfile.NamedTemporaryFile(suffix=".json") as figures:
        subprocess.run([f"{arguments.bin}/bench-server", f"ours=127.0.0.1:{ours.nfs_port}", "--fill", str(files), "--folders",
                        str(folders), "--clients", str(arguments.clients), "--slots", str(arguments.slots), "--hold",
                        arguments.hold, "--bytes", str(arguments.bytes), "--json-file", figures.name], check=True, stdin=subprocess.DEVNULL)
        return json.loads(pathlib.Path(figures.name).read_text())["filled"]["ours"]["rates"]


def start_again(ours, name, kill):
    (ours.kill if kill else ours.stop)(name)
    log = open(ours.home / f"{name}.log", "a")
    begun = time.monotonic()
    ours.processes[name] = subprocess.Popen([ours.program(f"{name}d"), "--config", str(ours.home / f"{name}.json")], stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL)
    return begun


def restart_seconds(ours, kill):
    """Of the MDS: until the first answer, and until the bricks are ready."""
    ready_before = ours.log("mds").count(" brick-ready ")
    begun = start_again(ours, "mds", kill)
    while not answers_null(ours.nfs_port):
        if ours.processes["mds"].poll() is not None:
            raise RuntimeError(f"the MDS ended:\n{ours.log('mds')[-3000:]}")
        time.sleep(0.005)
    answered = time.monotonic() - begun
    wait_for_bricks(ours, ready_before)
    return answered, time.monotonic() - begun


def brick_restart_seconds(ours, kill):
    """Until the MDS has it ready again: the brick has read its table, and both agree on what is in use."""
    ready_before = ours.log("mds").count(" brick-ready ")
    begun = start_again(ours, "brick", kill)
    wait_for_bricks(ours, ready_before)
    return time.monotonic() - begun


def walk(ours, files):
    """Through a mount of our own: how long what people do to a tree takes."""
    mount = ours.mount()
    tree = str(mount.path)
    seconds = {}

    def timed(name, command):
        begun = time.monotonic()
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        seconds[name] = time.monotonic() - begun
        return done.stdout.count(b"\n")

    found = timed("find", ["find", tree, "-type", "f"])
    # Of no file is it known without its attributes, and it is true of all.
    with_attributes = timed("find -mmin", ["find", tree, "-type", "f", "-mmin", "-100000"])
    memory = ours.resident_mib() | {"mount": server_bench.resident_mib(mount.process.pid)}
    timed("rm -rf", ["sh", "-c", 'exec rm -rf "$0"/*', tree])
    left = len(os.listdir(tree))
    mount.unmount()
    # The generator has some of its own beside them.
    if found < files or with_attributes != found or left:
        raise RuntimeError(f"of {files} files find found {found}, with attributes {with_attributes}, {left} were left")
    print(f"{found} files through a mount: " + ", ".join(
        f"{name} {spent:.2f} s ({found / spent:,.0f} files/s)" for name, spent in seconds.items()))
    print("resident behind both finds, MiB: " + ", ".join(f"{name} {mib:.0f}" for name, mib in memory.items()))
    return {"files": found, "seconds": seconds, "resident_mib": memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="the folder with our programs and the generator")
    parser.add_argument("--files", type=int, default=200_000)
    parser.add_argument("--folders", type=int, default=100)
    parser.add_argument("--in-one", type=int, default=0, help="so many more in one folder")
    parser.add_argument("--bytes", type=int, default=0, help="written to each file, of which --pool-size must have 4 KiB at least")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--slots", type=int, default=1, help="calls that a client has under way")
    parser.add_argument("--hold", choices=("nothing", "opens", "layouts"), default="nothing", help="what clients hold of each file")
    parser.add_argument("--walk", action="store_true", help="then find and rm -rf through a mount (pnfsrdma-fuse)")
    parser.add_argument("--pool-size", default="1G")
    parser.add_argument("--folder", default=server_bench.DISK, help="for the servers' data")
    parser.add_argument("--nice", type=int, default=0, help="of servers and generator: -20 where others work on the machine")
    parser.add_argument("--json-file")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: root is needed")
        return 77
    server_bench.be_nice(arguments.nice)
    with tempfile.TemporaryDirectory(prefix="bench-server.", dir=arguments.folder) as home:
        os.chmod(home, 0o755)
        # All opens are of one address: a million take 600 MB.
        ours = server_bench.Ours(arguments.bin, home, arguments.pool_size, memory_budget_mib=8192, memory_per_address_mib=8192)
        try:
            ours.start_all()
            before, memory_before = bytes_below(ours.home / "mds"), ours.resident_mib()
            rates = generate(arguments, ours, arguments.files, arguments.folders)
            rates_in_one = generate(arguments, ours, arguments.in_one, 1) if arguments.in_one else None
            memory = ours.resident_mib()
            if arguments.hold != "nothing":
                teardown(ours)
            restarts = {"stopped": restart_seconds(ours, False), "killed": restart_seconds(ours, True)}
            brick_restarts = {"stopped": brick_restart_seconds(ours, False), "killed": brick_restart_seconds(ours, True)}
            all_files = arguments.files + arguments.in_one
            bytes_a_file = (bytes_below(ours.home / "mds") - before) / all_files
            walked = walk(ours, all_files) if arguments.walk else None
        finally:
            ours.close()
    print(f"the last tenth : the first {rates[-1] / rates[0]:.2f}")
    if rates_in_one:
        print(f"{arguments.in_one} more in one folder: the last tenth : the first {rates_in_one[-1] / rates_in_one[0]:.2f}")
    print(f"metadata on disk {bytes_a_file:.0f} bytes a file, logs that wait to be compacted included")
    print("resident, MiB: " + ", ".join(f"{name} {memory_before[name]:.0f} -> {memory[name]:.0f}" for name in memory))
    for how, (answered, ready) in restarts.items():
        print(f"from the start of the MDS, {how} before, to its first answer {answered:.2f} s, until its bricks are ready {ready:.2f} s")
    for how, ready in brick_restarts.items():
        print(f"from the start of the brick, {how} before, until the MDS has it ready {ready:.2f} s")
    if arguments.json_file:
        pathlib.Path(arguments.json_file).write_text(json.dumps(
            {"files": arguments.files, "folders": arguments.folders, "rates": rates, "bytes_a_file": bytes_a_file,
             "resident_mib": {"before": memory_before, "after": memory}, "restart_seconds": restarts, "brick_restart_seconds": brick_restarts, "rates_in_one": rates_in_one, "walk": walked},
            indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
