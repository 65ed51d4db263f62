#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes blocks of 4 KiB round and round a file, each with its number and a checksum, and notes a number once fdatasync has
returned; checks later that every place holds the newest noted number for it, or a newer one.

usage: synced_writer.py write FILE NOTES      until SIGTERM; 1 on the first error
       synced_writer.py check FILE NOTES
"""
import hashlib
import os
import random
import signal
import sys

BLOCK = 4096
PLACES = 256


def block(number):
    body = random.Random(number).randbytes(BLOCK - 40)
    head = number.to_bytes(8, "big") + body
    return head + hashlib.sha256(head).digest()


def write(path, notes):
    stopping = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    with open(notes, "w", buffering=1) as log:
        number = 0
        while not stopping:
            os.pwrite(file, block(number), number % PLACES * BLOCK)
            os.fdatasync(file)
            log.write(f"{number}\n")
            number += 1
    os.close(file)
    print(f"{number} blocks written and synced")
    return 0


def check(path, notes):
    newest = {}
    with open(notes) as log:
        for line in log:
            newest[int(line) % PLACES] = int(line)
    bad = 0
    with open(path, "rb") as file:
        for place, number in sorted(newest.items()):
            file.seek(place * BLOCK)
            found = file.read(BLOCK)
            there = int.from_bytes(found[:8], "big")
            if len(found) != BLOCK or hashlib.sha256(found[:-32]).digest() != found[-32:] or there < number:
                print(f"place {place}: number {number} was synced, {there} is there")
                bad += 1
    print(f"{len(newest)} places checked, {bad} bad")
    return 1 if bad or not newest else 0


if __name__ == "__main__":
    sys.exit({"write": write, "check": check}[sys.argv[1]](*sys.argv[2:]))
