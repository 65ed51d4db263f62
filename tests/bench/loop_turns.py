# SPDX-License-Identifier: Apache-2.0
"""The turns of a metadata server's loop, from its metrics: how many took how long."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
from console_client import Console  # noqa: E402

NAME = "pnfsrdma_mds_loop_turn_seconds_bucket"


def read(socket):
    """[(seconds, so many turns took at most so long)], cumulative."""
    text = Console(socket).get("/metrics", prefix="").text
    found = re.findall(rf'^{NAME}{{[^}}]*le="([^"]+)"[^}}]*}} (\d+)', text, re.MULTILINE)
    return [(float(border), int(count)) for border, count in found]


def between(before, after):
    """[(seconds, so many turns took at most so long, and longer than those in front)] from one look to a later one."""
    counts, last = [], 0
    for (border, count), (_, earlier) in zip(after, before):
        counts.append((border, count - earlier - last))
        last = count - earlier
    return counts


def at_most(counts, share):
    """Seconds that this share of the turns took at most, as precisely as the histogram says."""
    wanted, seen = share * sum(count for _, count in counts), 0
    for border, count in counts:
        seen += count
        if count and seen >= wanted:
            return border
    return float("nan")
