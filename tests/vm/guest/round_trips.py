#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the packets of an overwrite of 4 KiB, of an fdatasync, and of the two as a database's log has them, on the client's
network device.

A round trip is a burst of requests that the client sends before it has heard anything, and what comes back. Ends with 1
unless the first two took one each, a write that is always followed by its fdatasync took one with it, no call went to the
MDS, and the flush was of the kind expected. With --round-trip-ms the link has been made that slow, and the clock is asked
instead.
"""
import argparse
import collections
import itertools
import json
import os
import socket
import statistics
import time

ROCE_PORT = 4791
# BTH opcodes of reliable connections (InfiniBand, 9.2), and RDMA FLUSH.
NAMES = {0x00: "SEND", 0x01: "SEND", 0x02: "SEND", 0x04: "SEND", 0x06: "WRITE", 0x07: "WRITE", 0x08: "WRITE", 0x0a: "WRITE",
         0x0c: "READ", 0x0d: "RESPONSE", 0x0e: "RESPONSE", 0x0f: "RESPONSE", 0x10: "RESPONSE", 0x11: "ACK", 0x1c: "FLUSH"}
ANSWERS = {"ACK", "RESPONSE"}
EXPECTED = {"native": ["> FLUSH", "< RESPONSE"], "message": ["> SEND", "< SEND"]}
REPETITIONS = 20
HABIT = 5
RARELY = 2  # the lease is renewed now and then
SETTLE = 0.05


class Wire:
    """Every packet of a device, both ways, as "> WRITE" (sent) or "< ACK" (received)."""

    def __init__(self, device):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))  # ETH_P_ALL: sent ones too
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.socket.bind((device, 3))
        self.socket.setblocking(False)

    def take(self):
        packets = []
        while True:
            try:
                data, address = self.socket.recvfrom(65536)
            except BlockingIOError:
                return packets
            name = self.name(data) if address[1] == 0x0800 else None
            if name:
                packets.append(("> " if address[2] == socket.PACKET_OUTGOING else "< ") + name)

    @staticmethod
    def name(packet):
        header = (packet[0] & 15) * 4
        if packet[9] == socket.IPPROTO_TCP:
            return "TCP"
        if packet[9] != socket.IPPROTO_UDP or int.from_bytes(packet[header + 2:header + 4], "big") != ROCE_PORT:
            return None
        return NAMES.get(packet[header + 8], f"opcode-{packet[header + 8]:#x}")


def round_trips(packets):
    """Bursts of requests, each begun after an answer to the one before."""
    count, heard = 0, True
    for packet in packets:
        if packet[0] == "<":
            heard = True
        elif packet[2:] not in ANSWERS and heard:
            count, heard = count + 1, False
    return count


def counters(mount):
    return json.loads(os.getxattr(mount, "system.pnfsrdma.statistics"))


def overwrite(file, number):
    os.pwrite(file, os.urandom(4096), number * 4096)


def form_habit(file):
    """From then on a write takes its flush along; two writes in a row end that."""
    for number in range(HABIT):
        overwrite(file, number)
        os.fdatasync(file)


def by_packets(file, options):
    wire = Wire(options.device)

    def sent_for(call, *arguments):
        wire.take()
        call(*arguments)
        time.sleep(SETTLE)
        return wire.take()

    writes, flushes, taken_along, afterwards = [], [], [], []
    for number in range(REPETITIONS):
        writes.append(sent_for(overwrite, file, number))
        overwrite(file, number + 1)
        flushes.append(sent_for(os.fdatasync, file))
    form_habit(file)
    for number in range(REPETITIONS):
        taken_along.append(sent_for(overwrite, file, number))
        afterwards.append(sent_for(os.fdatasync, file))

    failures = []
    usual = {}
    for what, rows, expected in (("write of 4 KiB", writes, 1), ("fdatasync", flushes, 1),
                                 ("write of 4 KiB with its flush", taken_along, 1), ("fdatasync behind it", afterwards, 0)):
        usual[what], times = collections.Counter(map(tuple, rows)).most_common(1)[0]
        print(f"{what}: {round_trips(usual[what])} round trips; {times} of {REPETITIONS} times: {', '.join(usual[what])}")
        if sum(round_trips(row) != expected or any("TCP" in packet for packet in row) for row in rows) > RARELY:
            failures.append(f"{what}: not {expected} round trips without the MDS: {rows}")
    flush = EXPECTED[options.method]
    for what, expected in (("fdatasync", flush), ("write of 4 KiB with its flush", ["> WRITE", *flush])):
        # A WRITE is as many packets as the MTU makes of it.
        if [packet for packet, _ in itertools.groupby(usual[what]) if packet[2:] != "ACK"] != expected:
            failures.append(f"{what}: {expected} is expected, and ACKs")
    return failures


def by_clock(file, options):
    took = {"write of 4 KiB": [], "fdatasync": [], "write of 4 KiB and its fdatasync": []}

    def timed(what, *calls):
        begin = time.monotonic()
        for call, *arguments in calls:
            call(*arguments)
        took[what].append(1000 * (time.monotonic() - begin))

    for number in range(REPETITIONS):
        timed("write of 4 KiB", (overwrite, file, number))
        overwrite(file, number + 1)
        timed("fdatasync", (os.fdatasync, file))
    form_habit(file)
    for number in range(REPETITIONS):
        timed("write of 4 KiB and its fdatasync", (overwrite, file, number), (os.fdatasync, file))
    failures = []
    for what, times in took.items():
        # A busy machine adds to many; what is never less than two round trips stays so in the best quarter, too.
        quarter = statistics.quantiles(times, n=4)[0]
        print(f"{what}: a quarter within {quarter:.1f} ms, half within {statistics.median(times):.1f} ms on a link of"
              f" {options.round_trip_ms:.0f} ms a round trip")
        if not options.round_trip_ms <= quarter < 1.8 * options.round_trip_ms:
            failures.append(f"{what}: that is not one round trip")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mount")
    parser.add_argument("device")
    parser.add_argument("method", choices=sorted(EXPECTED))
    parser.add_argument("--round-trip-ms", type=float)
    options = parser.parse_args()

    path = f"{options.mount}/round-trips"
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.write(file, bytes(1 << 20))
    os.fsync(file)
    count = by_clock if options.round_trip_ms else by_packets
    first = counters(options.mount)
    failures = count(file, options)
    last = counters(options.mount)
    os.close(file)
    for key in ("flushes_native", "flushes_commit_message", "flushes_layoutcommit"):
        print(f"{key}: {last[key] - first[key]}")
    for failure in failures:
        print("failed:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
