# SPDX-License-Identifier: Apache-2.0
"""Files on remote persistent memory, by libpnfsrdma (pnfsrdma(3)).

    with pnfsrdma.connect("/mnt/pmem") as client, client.open("array", os.O_RDWR | os.O_CREAT) as file:
        memory = client.alloc(1 << 20)     # registered: data goes straight from and to it
        memory[:5] = b"hello"
        file.pwrite(memory[:5], 0)
        file.fdatasync()

Whatever has the buffer protocol (bytes, bytearray, memoryview, NumPy arrays) may be written, and what is writable and
contiguous be read into; only memory of Client.alloc() is not copied. Errors are OSError. Calls release the interpreter's
lock.
"""
from __future__ import annotations

import ctypes
import itertools
import math
import mmap
import os
from types import TracebackType
from typing import NamedTuple, Sequence, TypeVar, Union

Buffer = Union[bytes, bytearray, memoryview]
_Self = TypeVar("_Self")

READ, WRITE, APPEND, FDATASYNC, FSYNC, ATOMIC_WRITE, COMPARE_AND_SWAP, FETCH_AND_ADD, VERIFY, SIGNAL_RANGE = range(10)
SIGNAL, GAP_SLOW, GAP_LOST = range(3)  # kinds of events
DURABLE = 1
LOCK_SHARED, LOCK_EXCLUSIVE = range(2)
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
MAP_READ, MAP_WRITE, MAP_SHARED = range(3)
ANY_ADDRESS = 2**64 - 1


class Operation(ctypes.Structure):
    """One operation of a queue: struct pnfsrdma_operation."""

    _fields_ = [("file", ctypes.c_void_p), ("opcode", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("buffer", ctypes.c_void_p),
                ("length", ctypes.c_uint64), ("offset", ctypes.c_uint64), ("user_data", ctypes.c_uint64)]


class _Completion(ctypes.Structure):
    _fields_ = [("user_data", ctypes.c_uint64), ("result", ctypes.c_int64), ("offset", ctypes.c_uint64)]


class _Range(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("length", ctypes.c_uint64)]


class Word(ctypes.Structure):
    """Of an operation on a word: struct pnfsrdma_word. `old`, when it has completed: what it was."""

    _fields_ = [("operand", ctypes.c_uint64), ("expected", ctypes.c_uint64), ("old", ctypes.c_uint64)]


class _Verification(ctypes.Structure):
    _fields_ = [("ranges", ctypes.c_void_p), ("expected", ctypes.c_void_p), ("found", ctypes.c_void_p), ("count", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]


class Completion(NamedTuple):
    """What became of an operation: bytes moved, or a negative errno; where an append went."""

    user_data: int
    result: int
    offset: int


class _Event(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("offset", ctypes.c_uint64), ("length", ctypes.c_uint64),
                ("value", ctypes.c_uint64)]


class Event(NamedTuple):
    """SIGNAL: what was signalled of what is watched. Else a gap: look again at all of it."""

    kind: int
    offset: int
    length: int
    value: int

    @property
    def is_gap(self) -> bool:
        return self.kind != SIGNAL


class Stat(NamedTuple):
    """What stat(2) tells of a file, as far as it is wanted here: sizes in bytes, the time in nanoseconds."""

    mode: int
    size: int
    links: int
    uid: int
    gid: int
    inode: int
    mtime_ns: int


class _Entry(ctypes.Structure):  # struct dirent
    _fields_ = [("ino", ctypes.c_uint64), ("off", ctypes.c_int64), ("reclen", ctypes.c_ushort), ("type", ctypes.c_ubyte),
                ("name", ctypes.c_char * 256)]


class _Timespec(ctypes.Structure):
    _fields_ = [("sec", ctypes.c_long), ("nsec", ctypes.c_long)]


class _Stat(ctypes.Structure):  # struct stat of 64-bit Linux
    if os.uname().machine == "x86_64":
        _fields_ = [("dev", ctypes.c_ulong), ("ino", ctypes.c_ulong), ("nlink", ctypes.c_ulong), ("mode", ctypes.c_uint),
                    ("uid", ctypes.c_uint), ("gid", ctypes.c_uint), ("pad", ctypes.c_uint), ("rdev", ctypes.c_ulong),
                    ("size", ctypes.c_long), ("blksize", ctypes.c_long), ("blocks", ctypes.c_long), ("atim", _Timespec),
                    ("mtim", _Timespec), ("ctim", _Timespec), ("reserved", ctypes.c_long * 3)]
    else:
        _fields_ = [("dev", ctypes.c_ulong), ("ino", ctypes.c_ulong), ("mode", ctypes.c_uint), ("nlink", ctypes.c_uint),
                    ("uid", ctypes.c_uint), ("gid", ctypes.c_uint), ("rdev", ctypes.c_ulong), ("pad1", ctypes.c_ulong),
                    ("size", ctypes.c_long), ("blksize", ctypes.c_int), ("pad2", ctypes.c_int), ("blocks", ctypes.c_long),
                    ("atim", _Timespec), ("mtim", _Timespec), ("ctim", _Timespec), ("reserved", ctypes.c_uint * 2)]


class _Partition(ctypes.Structure):
    _fields_ = [("block_size", ctypes.c_uint64), ("blocks", ctypes.c_uint64), ("quota", ctypes.c_uint64), ("allocated", ctypes.c_uint64),
                ("epoch", ctypes.c_uint64)]


class Partition(NamedTuple):
    """Of an owner's blocks: bytes of each; how many there are, may be allocated (0: all) and are; a number that grows with
    each start of the brick."""

    block_size: int
    blocks: int
    quota: int
    allocated: int
    epoch: int


class _Run(ctypes.Structure):
    _fields_ = [("address", ctypes.c_uint64), ("count", ctypes.c_uint64)]


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(os.environ.get("PNFSRDMA_LIBRARY", "libpnfsrdma.so.0"))
    pointer, text, size, offset, integer = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64, ctypes.c_int
    word = ctypes.c_uint64
    for name, result, *arguments in (
            ("version", text), ("last_error", text),
            ("connect", integer, text, text, ctypes.POINTER(pointer)), ("disconnect", integer, pointer),
            ("transport", text, pointer), ("durability", text, pointer),
            ("alloc", pointer, pointer, size), ("free", None, pointer, pointer),
            ("register", integer, pointer, pointer, size), ("unregister", integer, pointer, pointer),
            ("register_fd", integer, pointer, integer, size, ctypes.POINTER(pointer)),
            ("open", integer, pointer, text, integer, ctypes.c_uint, ctypes.POINTER(pointer)), ("close", integer, pointer),
            ("pread", ctypes.c_ssize_t, pointer, pointer, size, offset), ("pwrite", ctypes.c_ssize_t, pointer, pointer, size, offset),
            ("pwrite_durable", ctypes.c_ssize_t, pointer, pointer, size, offset),
            ("append", ctypes.c_ssize_t, pointer, pointer, size, ctypes.POINTER(offset)),
            ("atomic_write", integer, pointer, offset, word),
            ("compare_and_swap", integer, pointer, offset, word, word, ctypes.c_uint32, ctypes.POINTER(word)),
            ("fetch_and_add", integer, pointer, offset, word, ctypes.c_uint32, ctypes.POINTER(word)),
            ("flush_and_verify", integer, pointer, ctypes.POINTER(_Range), ctypes.c_uint, ctypes.POINTER(ctypes.c_uint32),
             ctypes.POINTER(ctypes.c_uint32)), ("crc32c", ctypes.c_uint32, pointer, size),
            ("watch_create", integer, pointer, offset, size, ctypes.POINTER(pointer)), ("watch_destroy", None, pointer),
            ("watch_fd", integer, pointer), ("watch_next", integer, pointer, ctypes.POINTER(_Event), integer),
            ("signal", integer, pointer, offset, size, word),
            ("fdatasync", integer, pointer), ("fsync", integer, pointer), ("ftruncate", integer, pointer, offset),
            ("fstat", integer, pointer, ctypes.POINTER(_Stat)), ("stat", integer, pointer, text, ctypes.POINTER(_Stat)),
            ("lock", integer, pointer, integer, offset, offset, integer), ("unlock", integer, pointer, offset, offset),
            ("may_lock", integer, pointer, integer, offset, offset),
            ("unlink", integer, pointer, text), ("rename", integer, pointer, text, text),
            ("rename2", integer, pointer, text, text, ctypes.c_uint),
            ("mkdir", integer, pointer, text, ctypes.c_uint), ("rmdir", integer, pointer, text),
            ("opendir", integer, pointer, text, ctypes.POINTER(pointer)), ("readdir", integer, pointer, ctypes.POINTER(_Entry)),
            ("closedir", integer, pointer),
            ("map_create", integer, pointer, offset, size, ctypes.POINTER(pointer)), ("map_destroy", None, pointer),
            ("map_create_at", integer, pointer, offset, size, pointer, ctypes.POINTER(pointer)),
            ("map_address", pointer, pointer), ("map_sync", integer, pointer, ctypes.POINTER(_Range), ctypes.c_uint),
            ("map_refresh", integer, pointer, ctypes.POINTER(_Range), ctypes.c_uint),
            ("queue_create", integer, pointer, ctypes.c_uint, ctypes.POINTER(pointer)), ("queue_destroy", None, pointer),
            ("queue_fd", integer, pointer), ("submit", integer, pointer, ctypes.POINTER(Operation), ctypes.c_uint),
            ("reap", integer, pointer, ctypes.POINTER(_Completion), ctypes.c_uint, integer),
            ("blocks_open", integer, text, text, text, text, ctypes.POINTER(pointer)), ("blocks_close", integer, pointer),
            ("blocks_transport", text, pointer), ("blocks_durability", text, pointer),
            ("blocks_stat", integer, pointer, ctypes.POINTER(_Partition)),
            ("blocks_alloc", integer, pointer, word, word, word, ctypes.POINTER(word)), ("blocks_free", integer, pointer, word, word),
            ("blocks_unmap", integer, pointer, word, word),
            ("blocks_list", integer, pointer, word, ctypes.POINTER(_Run), ctypes.c_uint),
            ("blocks_map", integer, pointer, word, word, ctypes.c_uint, ctypes.POINTER(pointer)), ("mapping_release", integer, pointer),
            ("mapping_read", integer, pointer, pointer, size, word), ("mapping_write", integer, pointer, pointer, size, word, ctypes.c_uint32),
            ("mapping_flush", integer, pointer, word, word),
            ("mapping_compare_and_swap", integer, pointer, word, word, word, ctypes.c_uint32, ctypes.POINTER(word)),
            ("mapping_fetch_and_add", integer, pointer, word, word, ctypes.c_uint32, ctypes.POINTER(word))):
        function = getattr(library, "pnfsrdma_" + name)
        function.restype = result
        function.argtypes = arguments
    return library


_library = _load()


def _check(result: int) -> int:
    if result < 0:
        raise OSError(-result, _library.pnfsrdma_last_error().decode(errors="replace"))
    return result


def _word(value: int) -> int:
    if not 0 <= value < 1 << 64:
        raise OverflowError(f"{value} is not a word of eight bytes")
    return value


def _path(path: Union[str, bytes, os.PathLike]) -> bytes:
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError("embedded null byte")
    return encoded


def _sink(buffer: Union[bytearray, memoryview]) -> tuple[object, ctypes.c_void_p, int]:
    view = memoryview(buffer).cast("B")
    if view.readonly:
        raise TypeError("the buffer cannot be written to")
    return _source(view)


def _source(data: Buffer) -> tuple[object, ctypes.c_void_p, int]:
    """The bytes' owner, address and length."""
    view = memoryview(data).cast("B")
    if isinstance(view.obj, bytes) or view.readonly:
        copy = ctypes.create_string_buffer(bytes(view), len(view))
        return copy, ctypes.cast(copy, ctypes.c_void_p), len(view)
    array = (ctypes.c_char * len(view)).from_buffer(view)
    return array, ctypes.cast(array, ctypes.c_void_p), len(view)


def _stat(result: _Stat) -> Stat:
    return Stat(result.mode, result.size, result.nlink, result.uid, result.gid, result.ino,
                result.mtim.sec * 1_000_000_000 + result.mtim.nsec)


def version() -> str:
    """Of the library that is loaded."""
    return _library.pnfsrdma_version().decode()


def crc32c(data: Buffer) -> int:
    """CRC32C (Castagnoli)."""
    owner, address, length = _source(data)
    return _library.pnfsrdma_crc32c(address, length)


def connect(source: str, options: str = "") -> Client:
    """As pnfsrdma_connect(3): "/mnt/pmem", a directory on a mount, without options; or "server:/export", options as behind -o of one."""
    client = ctypes.c_void_p()
    _check(_library.pnfsrdma_connect(_path(source), _path(options), ctypes.byref(client)))
    return Client(client)


class _Closing:
    """What is closed at the end of a with statement."""

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Client(_Closing):
    """A connection: a mount, or a server. Files and queues are closed before it is."""

    def __init__(self, pointer: ctypes.c_void_p) -> None:
        self._pointer = pointer

    def close(self) -> None:
        if self._pointer:
            _check(_library.pnfsrdma_disconnect(self._pointer))
            self._pointer = ctypes.c_void_p()

    @property
    def transport(self) -> str:
        return _library.pnfsrdma_transport(self._pointer).decode()

    @property
    def durability(self) -> str:
        return _library.pnfsrdma_durability(self._pointer).decode()

    def alloc(self, size: int) -> memoryview:
        """Registered memory; it lives until free() or the end of the connection."""
        address = _library.pnfsrdma_alloc(self._pointer, size)
        if not address:
            raise MemoryError(_library.pnfsrdma_last_error().decode(errors="replace"))
        return memoryview((ctypes.c_char * size).from_address(address)).cast("B")

    def free(self, memory: memoryview) -> None:
        """Of alloc(). Nobody may use it, or a part of it, any more."""
        address = ctypes.addressof((ctypes.c_char * len(memory)).from_buffer(memory))
        _library.pnfsrdma_free(self._pointer, address)

    def register(self, memory: Union[bytearray, memoryview, mmap.mmap]) -> None:
        """Memory of the program's own, whole pages (an mmap.mmap, an aligned array), of a connection to a server. It stays as and where it is until
        unregister()."""
        _owner, address, length = _sink(memory)
        _check(_library.pnfsrdma_register(self._pointer, address, length))

    def register_fd(self, memfd: int, size: int) -> memoryview:
        """The first `size` bytes of a memfd with F_SEAL_SHRINK, mapped here, and at the mount, too, if that is what is connected to."""
        address = ctypes.c_void_p()
        _check(_library.pnfsrdma_register_fd(self._pointer, memfd, size, ctypes.byref(address)))
        return memoryview((ctypes.c_char * size).from_address(address.value)).cast("B")

    def unregister(self, memory: Union[bytearray, memoryview, mmap.mmap]) -> None:
        """All that one of these two has registered; the memoryview of the second is of no use any more. OSError EBUSY: operations are under way."""
        _owner, address, _length = _sink(memory)
        _check(_library.pnfsrdma_unregister(self._pointer, address))

    def open(self, path: Union[str, bytes, os.PathLike], flags: int = os.O_RDONLY, mode: int = 0o666) -> File:
        file = ctypes.c_void_p()
        _check(_library.pnfsrdma_open(self._pointer, _path(path), flags, mode, ctypes.byref(file)))
        return File(file)

    def stat(self, path: Union[str, bytes, os.PathLike]) -> Stat:
        result = _Stat()
        _check(_library.pnfsrdma_stat(self._pointer, _path(path), ctypes.byref(result)))
        return _stat(result)

    def unlink(self, path: Union[str, bytes, os.PathLike]) -> None:
        _check(_library.pnfsrdma_unlink(self._pointer, _path(path)))

    def rename(self, old: Union[str, bytes, os.PathLike], new: Union[str, bytes, os.PathLike], flags: int = 0) -> None:
        """`flags`: RENAME_NOREPLACE or RENAME_EXCHANGE."""
        _check(_library.pnfsrdma_rename2(self._pointer, _path(old), _path(new), flags))

    def mkdir(self, path: Union[str, bytes, os.PathLike], mode: int = 0o777) -> None:
        _check(_library.pnfsrdma_mkdir(self._pointer, _path(path), mode))

    def rmdir(self, path: Union[str, bytes, os.PathLike]) -> None:
        _check(_library.pnfsrdma_rmdir(self._pointer, _path(path)))

    def listdir(self, path: Union[str, bytes, os.PathLike] = "/") -> list[str]:
        """The names in a directory, in no order, without "." and ".."."""
        directory, entry, names = ctypes.c_void_p(), _Entry(), []
        _check(_library.pnfsrdma_opendir(self._pointer, _path(path), ctypes.byref(directory)))
        try:
            while _check(_library.pnfsrdma_readdir(directory, ctypes.byref(entry))):
                names.append(os.fsdecode(entry.name))
        finally:
            _library.pnfsrdma_closedir(directory)
        return names

    def queue(self, depth: int) -> Queue:
        queue = ctypes.c_void_p()
        _check(_library.pnfsrdma_queue_create(self._pointer, depth, ctypes.byref(queue)))
        return Queue(queue)


class File(_Closing):
    """An open file."""

    def __init__(self, pointer: ctypes.c_void_p) -> None:
        self._pointer = pointer

    def close(self) -> None:
        if self._pointer:
            pointer, self._pointer = self._pointer, ctypes.c_void_p()
            _check(_library.pnfsrdma_close(pointer))

    def pread(self, count: int, offset: int) -> bytes:
        buffer = ctypes.create_string_buffer(count)
        done = _check(_library.pnfsrdma_pread(self._pointer, buffer, count, offset))
        return buffer.raw[:done]

    def preadinto(self, buffer: Union[bytearray, memoryview], offset: int) -> int:
        owner, address, length = _sink(buffer)
        return _check(_library.pnfsrdma_pread(self._pointer, address, length, offset))

    def pwrite(self, data: Buffer, offset: int) -> int:
        owner, address, length = _source(data)
        return _check(_library.pnfsrdma_pwrite(self._pointer, address, length, offset))

    def pwrite_durable(self, data: Buffer, offset: int) -> int:
        owner, address, length = _source(data)
        return _check(_library.pnfsrdma_pwrite_durable(self._pointer, address, length, offset))

    def append(self, data: Buffer) -> int:
        """Returns where it went."""
        owner, address, length = _source(data)
        at = ctypes.c_int64()
        _check(_library.pnfsrdma_append(self._pointer, address, length, ctypes.byref(at)))
        return at.value

    def atomic_write(self, offset: int, value: int) -> None:
        """Stores a word of eight bytes, durably and never in part; `offset` is a multiple of eight."""
        _check(_library.pnfsrdma_atomic_write(self._pointer, offset, _word(value)))

    def compare_and_swap(self, offset: int, expected: int, desired: int, durable: bool = False) -> int:
        """Stores `desired` if the word is `expected`. Returns what it was."""
        old = ctypes.c_uint64()
        _check(_library.pnfsrdma_compare_and_swap(self._pointer, offset, _word(expected), _word(desired), DURABLE if durable else 0,
                                                  ctypes.byref(old)))
        return old.value

    def fetch_and_add(self, offset: int, addend: int, durable: bool = False) -> int:
        """Adds, modulo 2**64. Returns what the word was."""
        old = ctypes.c_uint64()
        _check(_library.pnfsrdma_fetch_and_add(self._pointer, offset, addend % (1 << 64), DURABLE if durable else 0, ctypes.byref(old)))
        return old.value

    def flush_and_verify(self, ranges: Sequence[tuple[int, int]], expected: Sequence[int] | None = None) -> tuple[bool, list[int]]:
        """Makes what was written durable and has these (offset, length) read back: whether from the medium itself, and the CRC32C of each.
        OSError EBADMSG: one is not as expected."""
        found = (ctypes.c_uint32 * len(ranges))()
        wanted = None if expected is None else (ctypes.c_uint32 * len(ranges))(*expected)
        medium = _check(_library.pnfsrdma_flush_and_verify(self._pointer, (_Range * len(ranges))(*ranges), len(ranges), wanted, found))
        return bool(medium), list(found)

    def watch(self, offset: int, length: int) -> Watch:
        watch = ctypes.c_void_p()
        _check(_library.pnfsrdma_watch_create(self._pointer, offset, length, ctypes.byref(watch)))
        return Watch(watch)

    def signal(self, offset: int, length: int, value: int) -> None:
        """Makes this range durable, and tells `value` to those who watch a part of it."""
        _check(_library.pnfsrdma_signal(self._pointer, offset, length, _word(value)))

    def fdatasync(self) -> None:
        _check(_library.pnfsrdma_fdatasync(self._pointer))

    def fsync(self) -> None:
        _check(_library.pnfsrdma_fsync(self._pointer))

    def truncate(self, length: int) -> None:
        _check(_library.pnfsrdma_ftruncate(self._pointer, length))

    def stat(self) -> Stat:
        result = _Stat()
        _check(_library.pnfsrdma_fstat(self._pointer, ctypes.byref(result)))
        return _stat(result)

    def lock(self, kind: int = LOCK_EXCLUSIVE, offset: int = 0, length: int = 0, timeout: float | None = None) -> None:
        """Bytes from `offset` on (0: to the end), of this open file. Waits up to `timeout` seconds (None: forever); BlockingIOError: somebody else
        has locked a part of it."""
        milliseconds = -1 if timeout is None else math.ceil(timeout * 1000)
        _check(_library.pnfsrdma_lock(self._pointer, kind, offset, length, milliseconds))

    def unlock(self, offset: int = 0, length: int = 0) -> None:
        _check(_library.pnfsrdma_unlock(self._pointer, offset, length))

    def may_lock(self, kind: int = LOCK_EXCLUSIVE, offset: int = 0, length: int = 0) -> bool:
        """Nobody else's lock is in the way just now."""
        return _check(_library.pnfsrdma_may_lock(self._pointer, kind, offset, length)) == 1

    def map(self, offset: int, length: int, address: int = 0) -> Map:
        """`address`: where the image is to be, the beginning of a page; FileExistsError: something is mapped there."""
        pointer = ctypes.c_void_p()
        _check(_library.pnfsrdma_map_create_at(self._pointer, offset, length, address, ctypes.byref(pointer)))
        return Map(pointer, length)

    def operation(self, opcode: int, memory: memoryview | bytearray | None = None, offset: int = 0, flags: int = 0,
                  user_data: int = 0) -> Operation:
        """For Queue.submit(), which keeps `memory` until it completes."""
        if memory is None:
            return Operation(self._pointer.value, opcode, flags, None, 0, offset, user_data)
        view = memoryview(memory).cast("B")
        exported = (ctypes.c_char * len(view)).from_buffer(view)  # as long as it lives, nothing resizes it
        operation = Operation(self._pointer.value, opcode, flags, ctypes.addressof(exported), len(view), offset, user_data)
        operation.exported = exported
        return operation

    def word_operation(self, opcode: int, offset: int, operand: int, expected: int = 0, flags: int = 0, user_data: int = 0) -> Operation:
        """ATOMIC_WRITE, COMPARE_AND_SWAP (result 1: stored) or FETCH_AND_ADD, for Queue.submit(). What the word was is
        `word.old` of what this returns, when it has completed."""
        word = Word(_word(operand), _word(expected))
        operation = Operation(self._pointer.value, opcode, flags, ctypes.addressof(word), ctypes.sizeof(word), offset, user_data)
        operation.word = operation.exported = word
        return operation

    def verify_operation(self, ranges: Sequence[tuple[int, int]], expected: Sequence[int] | None = None, user_data: int = 0) -> Operation:
        """As flush_and_verify(), for Queue.submit(). The CRC32Cs are `found` of what this returns, when it has completed."""
        array = (_Range * len(ranges))(*ranges)
        wanted = None if expected is None else (ctypes.c_uint32 * len(ranges))(*expected)
        found = (ctypes.c_uint32 * len(ranges))()
        address = [None if each is None else ctypes.addressof(each) for each in (array, wanted, found)]
        verification = _Verification(*address, len(ranges), 0)
        operation = Operation(self._pointer.value, VERIFY, 0, ctypes.addressof(verification), ctypes.sizeof(verification), 0, user_data)
        operation.exported = (verification, array, wanted, found)
        operation.found = found
        return operation

    def signal_operation(self, offset: int, length: int, value: int, user_data: int = 0) -> Operation:
        """As signal(), for Queue.submit()."""
        told = ctypes.c_uint64(_word(value))
        operation = Operation(self._pointer.value, SIGNAL_RANGE, 0, ctypes.addressof(told), length, offset, user_data)
        operation.exported = told
        return operation


class Map(_Closing):
    """A private image of a part of a file: store into `memory`, then sync() what was stored to."""

    def __init__(self, pointer: ctypes.c_void_p, length: int) -> None:
        self._pointer = pointer
        address = _library.pnfsrdma_map_address(pointer)
        self.memory = memoryview((ctypes.c_char * length).from_address(address)).cast("B")

    def close(self) -> None:
        """Nobody may use `memory`, or a part of it, any more."""
        if self._pointer:
            _library.pnfsrdma_map_destroy(self._pointer)
            self._pointer = ctypes.c_void_p()

    def _ranges(self, ranges: Sequence[tuple[int, int]] | None) -> tuple[ctypes.Array[_Range], int]:
        wanted = [(0, len(self.memory))] if ranges is None else ranges
        return (_Range * len(wanted))(*wanted), len(wanted)

    def sync(self, ranges: Sequence[tuple[int, int]] | None = None) -> None:
        """Writes these (offset, length), all at once; durable when it returns. None: all of it."""
        array, count = self._ranges(ranges)
        _check(_library.pnfsrdma_map_sync(self._pointer, array, count))

    def refresh(self, ranges: Sequence[tuple[int, int]] | None = None) -> None:
        """Reads these (offset, length) again, over what was stored and not synced. None: all of it."""
        array, count = self._ranges(ranges)
        _check(_library.pnfsrdma_map_refresh(self._pointer, array, count))


class Watch(_Closing):
    """What others signal in a part of a file."""

    def __init__(self, pointer: ctypes.c_void_p) -> None:
        self._pointer = pointer

    def close(self) -> None:
        if self._pointer:
            _library.pnfsrdma_watch_destroy(self._pointer)
            self._pointer = ctypes.c_void_p()

    def fileno(self) -> int:
        """For select and asyncio: readable while there is an event."""
        return _library.pnfsrdma_watch_fd(self._pointer)

    def next(self, timeout: float | None = None) -> Event | None:
        """Waits up to `timeout` seconds (None: forever). None: no event came."""
        event = _Event()
        milliseconds = -1 if timeout is None else math.ceil(timeout * 1000)
        if not _check(_library.pnfsrdma_watch_next(self._pointer, ctypes.byref(event), milliseconds)):
            return None
        return Event(event.kind, event.offset, event.length, event.value)


class Queue(_Closing):
    """Many operations at once."""

    def __init__(self, pointer: ctypes.c_void_p) -> None:
        self._pointer = pointer
        self._tokens = itertools.count()
        self._running: dict[int, tuple[int, object]] = {}  # by token: the operation's user_data, and its memory

    def close(self) -> None:
        """Waits for what is under way."""
        if self._pointer:
            _library.pnfsrdma_queue_destroy(self._pointer)
            self._pointer = ctypes.c_void_p()
            self._running.clear()

    def fileno(self) -> int:
        """For select and asyncio."""
        return _library.pnfsrdma_queue_fd(self._pointer)

    def submit(self, operations: Sequence[Operation]) -> int:
        """How many were taken. BlockingIOError: the queue is full."""
        array = (Operation * len(operations))(*operations)
        tokens = []
        for copy, operation in zip(array, operations):
            copy.user_data = next(self._tokens)
            tokens.append(copy.user_data)
            self._running[copy.user_data] = (operation.user_data, getattr(operation, "exported", None))
        taken = 0
        try:
            taken = _check(_library.pnfsrdma_submit(self._pointer, array, len(operations)))
        finally:
            for token in tokens[taken:]:
                del self._running[token]
        return taken

    def reap(self, most: int = 64, timeout: float | None = None) -> list[Completion]:
        """Waits up to `timeout` seconds for the first (None: forever)."""
        array = (_Completion * most)()
        milliseconds = -1 if timeout is None else math.ceil(timeout * 1000)
        count = _check(_library.pnfsrdma_reap(self._pointer, array, most, milliseconds))
        return [Completion(self._running.pop(each.user_data)[0], each.result, each.offset) for each in array[:count]]


def open_blocks(address: str, partition: str, key_file: Union[str, bytes, os.PathLike], options: str = "") -> Blocks:
    """As pnfsrdma_blocks_open(3): a partition, by its brick's control port and its owner's key."""
    blocks = ctypes.c_void_p()
    _check(_library.pnfsrdma_blocks_open(_path(address), _path(partition), _path(key_file), _path(options), ctypes.byref(blocks)))
    return Blocks(blocks)


class Blocks(_Closing):
    """A partition, opened by its owner. Addresses are multiples of stat().block_size; counts are of blocks."""

    def __init__(self, pointer: ctypes.c_void_p) -> None:
        self._pointer = pointer

    def close(self) -> None:
        if self._pointer:
            _check(_library.pnfsrdma_blocks_close(self._pointer))
            self._pointer = ctypes.c_void_p()

    @property
    def transport(self) -> str:
        return _library.pnfsrdma_blocks_transport(self._pointer).decode()

    @property
    def durability(self) -> str:
        return _library.pnfsrdma_blocks_durability(self._pointer).decode()

    def stat(self) -> Partition:
        told = _Partition()
        _check(_library.pnfsrdma_blocks_stat(self._pointer, ctypes.byref(told)))
        return Partition(told.block_size, told.blocks, told.quota, told.allocated, told.epoch)

    def alloc(self, count: int, wanted: int = ANY_ADDRESS, tag: int = 0) -> int:
        """Zeroed blocks of neighbouring addresses; returns the first one's. `tag`: a call with that of an earlier one returns what that did."""
        address = ctypes.c_uint64()
        _check(_library.pnfsrdma_blocks_alloc(self._pointer, _word(count), _word(wanted), _word(tag), ctypes.byref(address)))
        return address.value

    def free(self, address: int, count: int) -> None:
        """Whoever has them mapped."""
        _check(_library.pnfsrdma_blocks_free(self._pointer, _word(address), _word(count)))

    def unmap(self, address: int, count: int) -> None:
        """Ends all mappings that have a part of these blocks, whosever they are."""
        _check(_library.pnfsrdma_blocks_unmap(self._pointer, _word(address), _word(count)))

    def list(self, start: int = 0, most: int = 4096) -> list[tuple[int, int]]:
        """What is allocated from `start` on: (address, count) of each run, at most `most`."""
        runs = (_Run * most)()
        count = _check(_library.pnfsrdma_blocks_list(self._pointer, _word(start), runs, most))
        return [(run.address, run.count) for run in runs[:count]]

    def map(self, address: int, count: int, flags: int = MAP_WRITE) -> Mapping:
        """`flags`: MAP_READ, MAP_WRITE, MAP_SHARED."""
        mapping = ctypes.c_void_p()
        _check(_library.pnfsrdma_blocks_map(self._pointer, _word(address), _word(count), flags, ctypes.byref(mapping)))
        return Mapping(mapping)


class Mapping(_Closing):
    """Blocks that are mapped. Offsets are of the mapping."""

    def __init__(self, pointer: ctypes.c_void_p) -> None:
        self._pointer = pointer

    def close(self) -> None:
        if self._pointer:
            pointer, self._pointer = self._pointer, ctypes.c_void_p()
            _check(_library.pnfsrdma_mapping_release(pointer))

    def read(self, count: int, offset: int) -> bytes:
        buffer = bytearray(count)
        self.read_into(buffer, offset)
        return bytes(buffer)

    def read_into(self, buffer: Union[bytearray, memoryview], offset: int) -> None:
        _owner, address, length = _sink(buffer)
        _check(_library.pnfsrdma_mapping_read(self._pointer, address, length, _word(offset)))

    def write(self, data: Buffer, offset: int, durable: bool = False) -> None:
        _owner, address, length = _source(data)
        _check(_library.pnfsrdma_mapping_write(self._pointer, address, length, _word(offset), DURABLE if durable else 0))

    def flush(self, offset: int, length: int) -> None:
        """Makes durable what was written there by this mapping."""
        _check(_library.pnfsrdma_mapping_flush(self._pointer, _word(offset), _word(length)))

    def compare_and_swap(self, offset: int, expected: int, desired: int, durable: bool = False) -> int:
        """Stores `desired` if the word is `expected`. Returns what it was."""
        old = ctypes.c_uint64()
        _check(_library.pnfsrdma_mapping_compare_and_swap(self._pointer, _word(offset), _word(expected), _word(desired),
                                                          DURABLE if durable else 0, ctypes.byref(old)))
        return old.value

    def fetch_and_add(self, offset: int, addend: int, durable: bool = False) -> int:
        """Adds, modulo 2**64. Returns what the word was."""
        old = ctypes.c_uint64()
        _check(_library.pnfsrdma_mapping_fetch_and_add(self._pointer, _word(offset), addend % (1 << 64), DURABLE if durable else 0,
                                                       ctypes.byref(old)))
        return old.value
