#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One thing after the other on a mount, until standard input ends. A line of standard output says of each that it was acknowledged:
what it was, and when it began and ended (CLOCK_MONOTONIC, which all hosts of one machine share).

usage: worker.py {files,database,sizes,looks,lock} PATH
"""
import fcntl
import os
import select
import sqlite3
import sys
import time

PAUSE = 0.02  # of seconds between two: paced, so that a machine with two processors has time for the servers
ROWS = 5  # in a transaction
BUSY_SECONDS = 120


def content(number):
    """Small files go through the server, larger ones straight to a brick."""
    return number.to_bytes(8, "big") * (128 if number % 2 else 4096)


def name_of(number):
    return f"{number:06}"


class Files:
    """Makes a file, syncs it, gives it its name."""

    def __init__(self, path):
        self.path, self.number = path, 0
        os.makedirs(path, exist_ok=True)

    def __call__(self):
        self.number += 1
        name = os.path.join(self.path, name_of(self.number))
        descriptor = os.open(f"{name}.new", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        try:
            data = content(self.number)
            if os.write(descriptor, data) != len(data):
                raise OSError("a short write")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(f"{name}.new", name)
        return self.number


class Database:
    """Transactions of SQLite with a rollback journal: each adds rows, and changes a total that has to agree with them."""

    def __init__(self, path):
        self.connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        self.connection.execute("PRAGMA synchronous = EXTRA")
        self.connection.execute("CREATE TABLE item (transaction_number INTEGER, value INTEGER)")
        self.connection.execute("CREATE TABLE total (items INTEGER, sum INTEGER)")
        self.connection.execute("INSERT INTO total VALUES (0, 0)")
        self.number = 0

    def __call__(self):
        self.number += 1
        values = [self.number * ROWS + row for row in range(ROWS)]
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany("INSERT INTO item VALUES (?, ?)", [(self.number, value) for value in values])
        self.connection.execute("UPDATE total SET items = items + ?, sum = sum + ?", (ROWS, sum(values)))
        self.connection.execute("COMMIT")
        return self.number


class Sizes:
    """Makes a file longer by a byte."""

    def __init__(self, path):
        self.path, self.size = path, 0
        with open(path, "w"):
            pass

    def __call__(self):
        self.size += 1
        os.truncate(self.path, self.size)
        return self.size


class Looks:
    """Asks for the size of that file."""

    def __init__(self, path):
        self.path = path

    def __call__(self):
        return os.stat(self.path).st_size


class Lock:
    """Adds one to a number in a file, under a lock. What is said is when the lock was held, and it is said before it is released."""

    def __init__(self, path):
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    def __call__(self):
        fcntl.lockf(self.descriptor, fcntl.LOCK_UN)
        fcntl.lockf(self.descriptor, fcntl.LOCK_EX)
        self.begun = time.monotonic()
        number = int(os.pread(self.descriptor, 32, 0) or b"0") + 1
        os.pwrite(self.descriptor, b"%020d" % number, 0)
        os.fsync(self.descriptor)
        return number


KINDS = {"files": Files, "database": Database, "sizes": Sizes, "looks": Looks, "lock": Lock}


def main():
    do = KINDS[sys.argv[1]](sys.argv[2])
    while not select.select([sys.stdin], [], [], PAUSE)[0]:
        begun = time.monotonic()
        number = do()
        ended = time.monotonic()
        print(number, getattr(do, "begun", begun), ended, flush=True)


if __name__ == "__main__":
    main()
