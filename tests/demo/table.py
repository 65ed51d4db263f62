#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the mounts' statistics as a table; exits 1 if the data did not go by RDMA.

usage: table.py LABEL:JSON ...
"""
import json
import sys


def mebibytes(count):
    return f"{count / (1 << 20):,.1f} MiB"


def main():
    columns = [(label, json.loads(text)) for label, text in (a.split(":", 1) for a in sys.argv[1:])]
    methods = [key for key in columns[0][1] if key.startswith("flushes_")]
    rows = [
        ("written by RDMA WRITE", lambda s: mebibytes(s["rdma_write_bytes"])),
        ("read by RDMA READ", lambda s: mebibytes(s["rdma_read_bytes"])),
        ("written through the MDS", lambda s: mebibytes(s["mds_write_bytes"])),
        ("read through the MDS", lambda s: mebibytes(s["mds_read_bytes"])),
        ("MDS calls (COMPOUNDs)", lambda s: f"{s['mds_calls']:,}"),
    ] + [(f"flushed by {m[8:].replace('_', ' ')}", lambda s, m=m: f"{s[m]:,}") for m in methods] + [
        ("fsync, fdatasync asked for", lambda s: f"{s['fsyncs']:,}, {s['fdatasyncs']:,}")]
    print("    " + " " * 28 + "".join(f"{label:>18}" for label, _ in columns))
    for name, value in rows:
        print(f"    {name:<28}" + "".join(f"{value(s):>18}" for _, s in columns))
    for label, s in columns:
        direct = s["rdma_write_bytes"] + s["rdma_read_bytes"]
        through = s["mds_write_bytes"] + s["mds_read_bytes"]
        print(f"    {label}: {100 * direct / max(1, direct + through):.1f} % of the bytes went by RDMA against granted handles")
        if direct < through:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
