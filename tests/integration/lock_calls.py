# SPDX-License-Identifier: Apache-2.0
"""fcntl(2)'s locks, as tests of several processes call them (OpenFile.call)."""
import errno
import fcntl
import os
import struct


def lock(descriptor, kind, length=0, start=0):
    fcntl.lockf(descriptor, kind, length, start)


def ofd_lock(descriptor, kind=fcntl.F_WRLCK):
    """F_OFD_SETLK on the whole file: the lock is the open file's, not the process's."""
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0))


def who_holds(descriptor, kind=fcntl.F_WRLCK, start=0, length=0):
    """F_GETLK: (type, start, length, process) of the lock in the way."""
    asked = struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0)
    found = struct.unpack("hhqqi4x", fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    return found[0], found[2], found[3], found[4]


def denied(f, kind=fcntl.LOCK_EX, length=0, start=0):
    try:
        f.call(lock, f.descriptor, kind | fcntl.LOCK_NB, length, start)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return True
    return False
