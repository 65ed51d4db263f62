#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a file, reads it back and compares, again and again, until something comes on stdin; then says how it went, as JSON.

usage: load.py FILE
"""
import errno
import json
import os
import select
import sys
import time

PIECE = 256 << 10
PIECES = 64


def piece(number, turn):
    return f"{turn:08d}:{number:08d};".encode() * (PIECE // 18) + b"\0" * (PIECE % 18)


class Load:
    def __init__(self, path):
        self.path = path
        self.descriptor = None
        self.result = {"turns": 0, "written": 0, "read": 0, "different": 0, "errors": {}, "recovered": 0}

    def opened(self):
        if self.descriptor is None:
            self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT)
        return self.descriptor

    def turn(self):
        turn = self.result["turns"]
        for number in range(PIECES):
            os.pwrite(self.opened(), piece(number, turn), number * PIECE)
            self.result["written"] += PIECE
        os.fdatasync(self.opened())
        for number in range(PIECES):
            read = os.pread(self.opened(), PIECE, number * PIECE)
            self.result["read"] += len(read)
            self.result["different"] += read != piece(number, turn)
        self.result["turns"] += 1

    def failed(self, error):
        name = errno.errorcode.get(error.errno, str(error.errno))
        self.result["errors"][name] = self.result["errors"].get(name, 0) + 1
        descriptor, self.descriptor = self.descriptor, None
        try:
            if descriptor is not None:
                os.close(descriptor)
        except OSError:
            pass  # what it reports was reported already

    def run(self):
        good = True
        while not select.select([sys.stdin], [], [], 0.02)[0]:
            try:
                self.turn()
                self.result["recovered"] += not good
                good = True
            except OSError as error:
                self.failed(error)
                good = False
                time.sleep(0.1)
        return self.result


if __name__ == "__main__":
    print(json.dumps(Load(sys.argv[1]).run()))
