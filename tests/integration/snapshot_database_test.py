#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Databases at work while snapshots are taken: each snapshot opens, is whole, and has what was committed before.

A snapshot is what a crash of the host would have left at that moment, so a database that survives crashes opens it. It is
read only; what is opened is a clone of it.

usage: snapshot_database_test.py BIN_DIRECTORY [SNAPSHOTS]
"""
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import threading
import unittest

import cluster
import snapshot_case
from ports import free_port

SNAPSHOTS = int(sys.argv.pop(2)) if len(sys.argv) > 2 and sys.argv[2].isdigit() else 2
POSTGRES = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1:]
snapshot_case.SnapshotCase.bin = sys.argv.pop(1)
ACCOUNTS, SUM = 100, 100_000


def clone(source, target):
    """cp asks for clones (copy_file_range); no byte is read where the server can share memory."""
    subprocess.run(["cp", "-a", "--sparse=never", source, target], check=True)


class Transfers(threading.Thread):
    """Moves money between accounts, a transaction each, and counts those that are committed."""

    def __init__(self, path, journal):
        super().__init__()
        self.path, self.journal, self.begun, self.committed, self.error = path, journal, 0, 0, None
        self.stopping = threading.Event()
        with sqlite3.connect(path) as database:
            database.execute(f"pragma journal_mode = {journal}")
            database.execute("create table account (id integer primary key, balance integer)")
            database.execute("create table transfer (number integer primary key, what blob)")
            database.executemany("insert into account values (?, ?)", [(i, SUM // ACCOUNTS) for i in range(ACCOUNTS)])
        database.close()

    def run(self):
        try:
            database = sqlite3.connect(self.path)
            database.execute("pragma synchronous = full")
            while not self.stopping.is_set():
                self.begun += 1
                with database:
                    self.add(database, self.begun % ACCOUNTS, -1)
                    database.execute("insert into transfer values (?, randomblob(2000))", (self.begun,))
                    self.add(database, self.begun * 7 % ACCOUNTS, 1)
                self.committed = self.begun
            database.close()
        except sqlite3.Error as error:
            self.error = error

    @staticmethod
    def add(database, account, amount):
        database.execute("update account set balance = balance + ? where id = ?", (amount, account))

    def stop(self):
        self.stopping.set()
        self.join()


class SnapshotsOfDatabases(snapshot_case.SnapshotCase):
    # What is written between two snapshots is copied by the block.
    daemons = {"pool_size": f"{1 + SNAPSHOTS // 5}G", "pool_directory": "/var/tmp", "durability": "process"}

    def test_sqlite_with_a_rollback_journal(self):
        self.sqlite("delete")

    def test_sqlite_with_a_write_ahead_log(self):
        self.sqlite("wal")

    def sqlite(self, journal):
        transfers = Transfers(self.folder / "db", journal)
        transfers.start()
        counts = []
        try:
            for number in range(SNAPSHOTS):
                cluster.wait_until(lambda: transfers.committed > number * 20 or transfers.error, 60, "transfers go on")
                committed = transfers.committed
                self.take(f"s{number}")
                begun = transfers.begun
                counts.append(self.transfers_in(f"s{number}"))
                self.assertLessEqual(committed, counts[-1])
                self.assertLessEqual(counts[-1], begun)
        finally:
            transfers.stop()
        self.assertIsNone(transfers.error)
        # They still are what they were, whatever was written since.
        self.assertEqual([self.transfers_in(f"s{number}") for number in range(SNAPSHOTS)], counts)

    def transfers_in(self, snapshot):
        opened = self.folder / "opened"
        clone(self.of(snapshot), opened)
        database = sqlite3.connect(opened / "db")
        self.assertEqual(database.execute("pragma integrity_check").fetchall(), [("ok",)])
        self.assertEqual(database.execute("select sum(balance) from account").fetchone(), (SUM,))
        count, last = database.execute("select count(*), max(number) from transfer").fetchone()
        self.assertEqual(count, last or 0)
        database.close()
        shutil.rmtree(opened)
        return count

    @unittest.skipUnless(POSTGRES, "PostgreSQL is not installed")
    def test_postgresql(self):
        server = Postgres(self.folder / "data", self.cluster.home / "postgres.log")
        server.make()
        self.addCleanup(server.stop)
        server.start()
        server.run("pgbench", "-i", "-q", "postgres")
        load = server.begin("pgbench", "-c", "2", "-n", "-T", "3600", "postgres")
        try:
            for number in range(max(1, SNAPSHOTS // 2)):  # each is a clone of 1,000 files, and a recovery
                committed = server.count()
                cluster.wait_until(lambda: server.count() > committed, 60, "transactions are committed")
                committed = server.count()
                self.take(f"p{number}")
                now = server.count()
                found = self.postgresql_in(f"p{number}")
                self.assertLessEqual(committed, found)
                self.assertLessEqual(found, now + 2)
            self.assertIsNone(load.poll(), "the load ended")
        finally:
            load.kill()
            load.wait()

    def postgresql_in(self, snapshot):
        clone(self.of(snapshot) / "data", self.folder / "opened")
        (self.folder / "opened" / "postmaster.pid").unlink()
        server = Postgres(self.folder / "opened", self.cluster.home / "opened.log", "-c fsync=off")
        server.start()
        try:
            # What pgbench does in one transaction is in all four tables or in none.
            sums = [server.ask(f"select coalesce(sum({column}), 0) from pgbench_{table}") for column, table in
                    (("abalance", "accounts"), ("bbalance", "branches"), ("tbalance", "tellers"), ("delta", "history"))]
            self.assertEqual(len(set(sums)), 1, sums)
            return server.count()
        finally:
            server.stop()
            shutil.rmtree(self.folder / "opened")


class Postgres:
    """A server with its data in `data`, as the user postgres. Without fsync it does not sync each of 1,300 files first."""

    def __init__(self, data, log, options=""):
        self.data, self.log, self.port, self.sockets = data, log, free_port(), log.parent / f"sockets-{data.name}"
        self.options = options

    def command(self, program, *arguments):
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", str(POSTGRES[0] / program),
                *map(str, arguments)]

    def begin(self, program, *arguments):
        return subprocess.Popen(self.command(program, "-h", self.sockets, "-p", self.port, *arguments), cwd="/",
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self, program, *arguments):
        return subprocess.run(self.command(program, "-h", self.sockets, "-p", self.port, *arguments), cwd="/",
                              check=True, capture_output=True, text=True, timeout=300).stdout

    def ask(self, query):
        return self.run("psql", "-d", "postgres", "-Atc", query).strip()

    def count(self):
        return int(self.ask("select count(*) from pgbench_history"))

    def make(self):
        self.data.mkdir(mode=0o700)
        shutil.chown(self.data, "postgres", "postgres")
        subprocess.run(self.command("initdb", "-D", self.data, "-A", "trust", "-N", "--no-instructions"), cwd="/", check=True,
                       capture_output=True, timeout=300)

    def start(self):
        self.sockets.mkdir(exist_ok=True)
        shutil.chown(self.sockets, "postgres", "postgres")
        options = f"-p {self.port} -k {self.sockets} -c listen_addresses= -c shared_buffers=16MB {self.options}"
        with open(self.log, "a") as log:
            started = subprocess.run(self.command("pg_ctl", "-D", self.data, "-w", "-t", "120", "-o", options, "start"),
                                     cwd="/", stdout=log, stderr=log, timeout=150)
        if started.returncode != 0:
            raise RuntimeError(f"PostgreSQL does not start:\n{self.log.read_text()[-3000:]}")

    def stop(self):
        subprocess.run(self.command("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop"), cwd="/",
                       capture_output=True, timeout=120)


if __name__ == "__main__":
    unittest.main(verbosity=2)
