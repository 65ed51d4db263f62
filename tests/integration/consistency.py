# SPDX-License-Identifier: Apache-2.0
"""Judges of histories: what several mounts did to the same few objects, each operation with the moments of its call and its
return, against what a mode of the mount promises.

An operation is an Operation; `what` it did to its `key`, with the `value` that it left or saw. Times are of one clock.
"""
import dataclasses
from typing import Any

NOTHING = None  # the value of a name that is not there


@dataclasses.dataclass(frozen=True)
class Operation:
    process: int
    key: str
    what: str  # "write" and "read" of a register; names: see Names
    value: Any
    call: float
    end: float
    more: Any = None

    def __str__(self):
        return f"[{self.call:.6f} {self.end:.6f}] process {self.process}: {self.what} {self.key} {self.value} {self.more or ''}"


class Violation(AssertionError):
    """A history that the mode does not allow. `at`: an operation of which that was noticed."""
    def __init__(self, what, at=None):
        super().__init__(what)
        self.at = at


def around(operations, operation, seconds=0.3):
    """What happened to the same key beside it, as text."""
    near = [other for other in operations if other.key == operation.key or other.more == operation.key]
    near = [other for other in near if other.end > operation.call - seconds and other.call < operation.end + seconds / 3]
    return "\n".join(str(other) for other in sorted(near, key=lambda other: other.call))


def by_key(operations):
    keys = {}
    for operation in operations:
        keys.setdefault(operation.key, []).append(operation)
    return keys


def check_regular(operations, initial, stale=lambda operation: 0.0):
    """Each read has a value that was written: not behind it, and not before another one that was whole between the two. A
    value may be `stale(read)` seconds old. `operations`: "write", "perhaps" written, "read", of any number of registers."""
    for operations_of_one in by_key(operations).values():
        begin = Operation(-1, "", "write", initial, float("-inf"), float("-inf"))
        writers = {initial: [begin]}
        for operation in operations_of_one:
            if operation.what != "read":
                writers.setdefault(operation.value, []).append(operation)
        ends = sorted((operation for operation in operations_of_one if operation.what == "write"), key=lambda write: write.end)
        for read in operations_of_one:
            if read.what == "read":
                check_read(read, writers.get(read.value, []), ends, stale(read))


def check_read(read, sources, ends, stale):
    """`sources`: the writes of what was read; `ends`: all, by their end."""
    newest = max((write.call for write in earlier(ends, read.call - stale)), default=float("-inf"))
    if not any(source.call < read.end and source.end >= newest for source in sources):
        if not any(source.call < read.end for source in sources):
            raise Violation(f"nobody had written that: {read}", read)
        hidden = max(earlier(ends, read.call - stale), key=lambda write: write.call)
        raise Violation(f"old: {read}, behind {hidden}", read)


def earlier(ends, moment):
    """Those that had ended."""
    for write in ends:
        if write.end >= moment:
            return
        yield write


class Register:
    """The model of one that is written and read in one step."""
    @staticmethod
    def apply(state, operation):
        """The states that may be behind it; none: it cannot have been so."""
        if operation.what == "write":
            return [(operation.value,)]
        return [state] if state == (operation.value,) else []


class Names:
    """The model of a directory: a state is what each name leads to, in a fixed order. `key` is the first name, `more` the
    second; a value is a file's number, or the name of an error."""
    def __init__(self, names):
        self.places = {name: place for place, name in enumerate(names)}

    def apply(self, state, operation):
        place = self.places[operation.key]
        is_there = state[place] is not NOTHING
        match operation.what, operation.value:
            case "look", value:
                return [state] if state[place] == value else []
            case "create", "EEXIST":
                return [state] if is_there else []
            case "create", value:
                return [] if is_there else [self.changed(state, {place: value})]
            case ("unlink" | "rename"), "ENOENT":
                return [] if is_there else [state]
            case "unlink", _:
                return [self.changed(state, {place: NOTHING})] if is_there else []
            case "rename", _:
                target = self.places[operation.more]
                moved = [self.changed(state, {place: NOTHING, target: state[place]})] if is_there else []
                # Found by its new name, which somebody else has given it meanwhile: two names of one file, to the kernel,
                # and rename(2) does nothing.
                return moved + [state] if state[target] is not NOTHING else moved
        raise ValueError(operation.what)

    @staticmethod
    def changed(state, changes):
        return tuple(changes.get(place, value) for place, value in enumerate(state))


def check_linearizable(operations, model, initial):
    """There is an order of all, in which none comes before one that had ended when it was called, and that the model can
    go. Each process does one thing after the other. (Wing and Gong, with the states that were seen: Lowe.)"""
    processes = {}
    for operation in sorted(operations, key=lambda operation: operation.call):
        processes.setdefault(operation.process, []).append(operation)
    lines = list(processes.values())
    start = (tuple(0 for _ in lines), initial)
    seen, stack, furthest = {start}, [start], start
    while stack:
        at, state = stack.pop()
        if sum(at) > sum(furthest[0]):
            furthest = (at, state)
        waiting = [line[index] for line, index in zip(lines, at) if index < len(line)]
        if not waiting:
            return
        first_end = min(operation.end for operation in waiting)
        for number, (line, index) in enumerate(zip(lines, at)):
            if index == len(line) or line[index].call > first_end:
                continue
            for behind in model.apply(state, line[index]):
                following = (at[:number] + (index + 1,) + at[number + 1:], behind)
                if following not in seen:
                    seen.add(following)
                    stack.append(following)
    at, state = furthest
    stuck = "\n  ".join(str(line[index]) for line, index in zip(lines, at) if index < len(line))
    waiting = [line[index] for line, index in zip(lines, at) if index < len(line)]
    raise Violation(f"no order explains it: behind {sum(at)} operations, in state {state}, none of\n  {stuck}", waiting[0])


def check_increments(operations, first=0):
    """Of a counter, each under a lock: `value` is what was found. None is lost, and they are in the order of time."""
    found = sorted(operation.value for operation in operations)
    if found != list(range(first, first + len(found))):
        lost = [value for value, after in zip(found, found[1:]) if value == after]
        raise Violation(f"increments were lost: {lost[:5] or found[:5]} of {len(found)}")
    newest_call = float("-inf")
    for operation in sorted(operations, key=lambda operation: operation.value):
        if operation.end < newest_call:
            raise Violation(f"found {operation.value} though a later value had been found before: {operation}")
        newest_call = max(newest_call, operation.call)


def registers_of_names(operations):
    """What operations on names did to each of them, as registers of whether it is there: for a mode in which who looks may
    see what was so a while ago. Only what succeeded is a write; a failure has seen that the name was there, or was not."""
    registers = []
    for operation in operations:
        def as_register(key, what, is_there, operation=operation):
            registers.append(dataclasses.replace(operation, key=key, what=what, value=is_there))
        failed = operation.value in ("ENOENT", "EEXIST")
        if operation.what == "look" or failed:
            is_there = operation.value == "EEXIST" or operation.what == "look" and operation.value is not NOTHING
            as_register(operation.key, "read", is_there)
        elif operation.what == "rename":  # which may have done nothing: see Names
            as_register(operation.key, "perhaps", False)
            as_register(operation.more, "perhaps", True)
        else:
            as_register(operation.key, "write", operation.what == "create")
    return registers
