#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One file by two mounts: who holds a lock through one is alone, whoever asks through the other; and each sees what the other
wrote before it unlocked. By fcntl and by flock.

usage: exclusion.py PATH_OF_ONE PATH_OF_OTHER
"""
import errno
import fcntl
import os
import sys

TIMES = 5  # the kernel's client asks again after seconds


def denied(lock, descriptor, *range_):
    try:
        lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, *range_)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return True
    lock(descriptor, fcntl.LOCK_UN, *range_)
    return False


def they_exclude_each_other(lock, one, other):
    for holder, asker in ((one, other), (other, one)):
        lock(holder, fcntl.LOCK_EX)
        assert denied(lock, asker), f"{lock.__name__}: both hold it"
        lock(holder, fcntl.LOCK_UN)
        assert not denied(lock, asker), f"{lock.__name__}: nobody holds it, and it is denied"


def ranges_apart_do_not(one, other):
    for holder, asker in ((one, other), (other, one)):
        fcntl.lockf(holder, fcntl.LOCK_EX, 100, 1000)
        assert denied(fcntl.lockf, asker, 1, 1099), "the last byte of the range"
        assert not denied(fcntl.lockf, asker, 10, 1100), "bytes behind the range"
        fcntl.lockf(holder, fcntl.LOCK_UN, 100, 1000)


def count_up(lock, path):
    descriptor = os.open(path, os.O_RDWR)
    for _ in range(TIMES):
        lock(descriptor, fcntl.LOCK_EX)
        os.pwrite(descriptor, b"%8d" % (int(os.pread(descriptor, 8, 0)) + 1), 0)
        lock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def count_under_lock(lock, path):
    """What a process that locks reads. Linux's client promises less to one that only opens: while the file is open for
    writing elsewhere on its host, as it is here, an open keeps the pages there are whatever the change attribute says."""
    with open(path, "rb+", buffering=0) as file:
        lock(file, fcntl.LOCK_EX)
        return int(os.pread(file.fileno(), 8, 0))


def none_is_lost(lock, one, other):
    with open(one, "wb") as file:
        file.write(b"%8d" % 0)
    children = []
    for path in (one, other):
        children.append(os.fork())
        if children[-1] == 0:
            status = 1
            try:
                count_up(lock, path)
                status = 0
            finally:
                os._exit(status)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0], "a process that counts ended badly"
    for path in (one, other):
        counted = count_under_lock(lock, path)
        assert counted == 2 * TIMES, f"{lock.__name__}: {2 * TIMES} times one is {counted} by {path}"


def main():
    one, other = sys.argv[1:]
    with open(one, "wb") as file:
        file.write(bytes(4096))
    descriptors = os.open(one, os.O_RDWR), os.open(other, os.O_RDWR)
    ranges_apart_do_not(*descriptors)
    for lock in (fcntl.lockf, fcntl.flock):
        they_exclude_each_other(lock, *descriptors)
        none_is_lost(lock, one, other)
        print(f"{lock.__name__}: exclusion both ways, {2 * TIMES} additions, none lost")


if __name__ == "__main__":
    main()
