#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a mount shows what was acknowledged to the workers: prints what is wrong, exits 1 then.

usage: check.py MOUNT FIRST LAST TRANSACTIONS

Files FIRST to LAST are read, the names of all up to LAST are looked for, and at least so many transactions.
"""
import contextlib
import os
import sqlite3
import sys

from worker import BUSY_SECONDS, ROWS, content, name_of


def check_files(folder, first, last):
    names = set(os.listdir(folder))
    wanted = {name_of(number) for number in range(1, last + 1)}
    # Behind the last one are those that were made meanwhile.
    more = {name for name in names - wanted if int(name.removesuffix(".new")) <= last}
    wrong = [f"{name} was acknowledged and is not there" for name in sorted(wanted - names)]
    wrong += [f"{name} is there again" for name in sorted(more)]
    for number in range(first, last + 1):
        if name_of(number) in names:
            with open(os.path.join(folder, name_of(number)), "rb") as file:
                if file.read() != content(number):
                    wrong.append(f"{name_of(number)} has other bytes than were written")
    return wrong


def check_database(path, transactions):
    wrong = []
    with contextlib.closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        sound = connection.execute("PRAGMA integrity_check").fetchall()
        if sound != [("ok",)]:
            wrong.append(f"integrity_check: {sound[:5]}")
        highest, distinct, items, total = connection.execute(
            "SELECT coalesce(max(transaction_number), 0), count(DISTINCT transaction_number), count(*), coalesce(sum(value), 0) FROM item").fetchone()
        if highest < transactions:
            wrong.append(f"transaction {transactions} was acknowledged, {highest} is the last that is there")
        if distinct != highest or items != highest * ROWS:
            wrong.append(f"{items} rows of {distinct} transactions, the last of them is {highest}")
        if connection.execute("SELECT items, sum FROM total").fetchall() != [(items, total)]:
            wrong.append("the total does not agree with the rows")
        connection.execute("COMMIT")
    return wrong


def main():
    mount, first, last, transactions = sys.argv[1], *map(int, sys.argv[2:5])
    wrong = check_files(os.path.join(mount, "files"), first, last) + check_database(os.path.join(mount, "database"), transactions)
    print("\n".join(wrong[:20]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
