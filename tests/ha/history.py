# SPDX-License-Identifier: Apache-2.0
"""What answers say, each with the moments of its question and itself: whether one server only can have given them."""
import bisect
import itertools


def stale_looks(sizes, looks):
    """Looks that saw a size that had been exceeded before they were asked, or that nobody had asked for yet."""
    ends, begins = [size.ended for size in sizes], [size.begun for size in sizes]
    wrong = []
    for look in looks:
        least = bisect.bisect_left(ends, look.begun)  # so many were acknowledged before it was asked; each made it longer by one
        most = bisect.bisect_right(begins, look.ended) + 1  # the one that is on its way has said nothing yet
        if not least <= look.number <= most:
            wrong.append(f"a look from {look.begun:.3f} to {look.ended:.3f} saw {look.number}, not {least} to {most}")
    return wrong


def held_twice(holders):
    """Intervals of two holders of one lock that overlap, and numbers that two of them have made."""
    intervals = sorted((operation.begun, operation.ended, operation.number, name)
                       for name, operations in holders.items() for operation in operations)
    wrong = []
    for (begun, ended, number, name), (next_begun, next_ended, next_number, next_name) in itertools.pairwise(intervals):
        if next_begun < ended:
            wrong.append(f"{name} held the lock from {begun:.3f} to {ended:.3f}, {next_name} from {next_begun:.3f} to {next_ended:.3f}")
        if next_number != number + 1:
            wrong.append(f"{name} counted to {number} until {ended:.3f}, then {next_name} to {next_number} at {next_begun:.3f}")
    return wrong


def terms(launches, looks):
    """For each start of a server the interval in which it surely had the lead: it answered before it, and behind it."""
    found = {}
    for look in looks:
        start = bisect.bisect_right(launches, look.begun)
        if start == bisect.bisect_right(launches, look.ended):  # else it may be of either
            first, last = found.get(start, (look.ended, look.begun))
            found[start] = (min(first, look.ended), max(last, look.begun))
    return found


def leads_at_once(answers):
    """`answers`: name of a server -> (when it was started, looks at it). A start has the lead once only."""
    intervals = [(first, last, f"{name}, start {start}") for name, (launches, looks) in answers.items()
                 for start, (first, last) in terms(launches, looks).items() if first < last]
    return [f"{one[2]} had the lead from {one[0]:.3f} to {one[1]:.3f}, {other[2]} from {other[0]:.3f} to {other[1]:.3f}"
            for one, other in itertools.combinations(sorted(intervals), 2) if max(one[0], other[0]) < min(one[1], other[1])]
