# SPDX-License-Identifier: Apache-2.0
"""Writes numbered records with fsync until told to stop, and says of each when it was durable.

usage: record_writer.py FILE [SECONDS]

SECONDS are waited between records. One line of standard output for each record: its number, and the seconds it took since the one before. "EIO" instead of
the seconds: the server said that it was lost, and it is written again. It ends when its standard input does.
"""
import errno
import os
import select
import subprocess
import sys
import threading
import time

from cluster import wait_until

RECORD = 4096
SLOTS = 2048  # the file grows to 8 MiB, then records replace older ones


def record(number):
    return number.to_bytes(8, "big") * (RECORD // 8)


def expected(count):
    """The file behind records 0 to count - 1."""
    first = max(0, count - SLOTS)
    return b"".join(record(number) for number in sorted(range(first, count), key=lambda number: number % SLOTS))


def write(path, number):
    # Opened for each record: what an open file was told once as EIO is then behind it.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        at = number % SLOTS * RECORD
        if os.pwrite(descriptor, record(number), at) != RECORD:
            raise OSError(errno.EIO, "short write")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Writer:
    """This program as a child, and what it has said so far."""

    def __init__(self, path, pause=0.0):
        self.process = subprocess.Popen([sys.executable, __file__, str(path), str(pause)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.durable, self.lost = 0, 0
        self.last = time.monotonic()  # when the last one was durable
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            number, how = line.split()
            if how == "EIO":
                self.lost += 1
            else:
                self.last = time.monotonic()
                self.durable = int(number) + 1

    def goes_on(self, seconds, what):
        """Two more: the first may have been on its way before."""
        begin = self.durable
        wait_until(lambda: self.durable >= begin + 2, seconds, f"the writer goes on {what}")

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=60)
        self.reader.join()
        self.process.stdout.close()
        return code


def main():
    number, before = 0, time.monotonic()
    pause = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    while not select.select([sys.stdin], [], [], pause)[0]:
        try:
            write(sys.argv[1], number)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            print(number, "EIO", flush=True)
            continue
        now = time.monotonic()
        print(number, f"{now - before:.3f}", flush=True)
        number, before = number + 1, now


if __name__ == "__main__":
    main()
