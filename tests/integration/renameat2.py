# SPDX-License-Identifier: Apache-2.0
"""renameat2(2), which Python does not have."""
import ctypes
import os

NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4
AT_FDCWD = -100
_libc = ctypes.CDLL(None, use_errno=True)


def renameat2(old, new, flags):
    """Raises OSError, as os.rename() does."""
    if _libc.renameat2(AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new), ctypes.c_uint(flags)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(old), None, str(new))
