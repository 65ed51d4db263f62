#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tree keeps its promises: includes point one way, files stay small, every source has its SPDX line.

usage: structure_test.py SOURCE_ROOT
"""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[3]

# Folder, or source without its ending -> the folders and sources whose headers it may include: these exactly, or with
# "/*" all below, too (its own are always allowed). The longest match counts.
MAY_INCLUDE = {
    "shared/base": [],
    "shared/version": [],
    "shared/ring": ["shared/base"],
    "shared/xdr": ["shared/base"],
    "shared/rpc": ["shared/base", "shared/xdr"],
    "shared/nfs4": ["shared/base", "shared/xdr"],
    "shared/rdma": ["shared/base"],
    "shared/rdma/iwarp": ["shared/base", "shared/rdma"],
    "shared/rdma/verbs": ["shared/base", "shared/rdma"],
    "shared/rpc_tls": ["shared/base", "shared/rpc"],
    "shared/http": ["shared/base"],
    "shared/rpc_rdma": ["shared/base", "shared/xdr", "shared/rpc", "shared/rdma"],
    "shared/pmem": ["shared/base"],
    "shared/brick": ["shared/base", "shared/xdr", "shared/rpc", "shared/rdma"],
    # The client: data_path -> file -> {brick, mds.h}; session -> mds.h; session and brick do not know each other. What
    # lies in the folder itself (counters, options, who asks) is for all of them.
    "shared/initiator": ["shared/base", "shared/nfs4"],
    "shared/initiator/mds": ["shared/base", "shared/xdr", "shared/nfs4", "shared/initiator"],
    "shared/initiator/brick": ["shared/base", "shared/rpc", "shared/nfs4", "shared/rdma", "shared/brick", "shared/initiator"],
    "shared/initiator/file": ["shared/base", "shared/nfs4", "shared/initiator", "shared/initiator/mds", "shared/initiator/brick"],
    "shared/initiator/session": ["shared/base", "shared/xdr", "shared/rpc", "shared/rpc_rdma", "shared/nfs4",
                                 "shared/initiator", "shared/initiator/mds"],
    "shared/initiator/data_path": ["shared/base", "shared/rpc", "shared/initiator", "shared/initiator/mds",
                                   "shared/initiator/brick", "shared/initiator/file"],
    "shared/client": ["shared/base", "shared/xdr", "shared/rpc_rdma", "shared/nfs4", "shared/rdma", "shared/rdma/iwarp", "shared/rdma/verbs",
                      "shared/initiator", "shared/initiator/brick", "shared/initiator/session"],
    "server/service": ["shared/base"],
    "server/brickd": ["shared/*", "server/service"],
    "server/console": ["shared/base", "shared/http"],
    "server/mds": ["shared/*", "server/mds/*", "server/console", "server/service"],
    # The metadata server, floor by floor: each may include what is below it.
    "server/mds/meta": ["shared/*"],
    "server/mds/log": ["shared/*", "server/mds/meta"],
    "server/mds/state": ["shared/*", "server/mds/meta"],
    "server/mds/grants": ["shared/*", "server/mds/meta", "server/mds/state"],
    "server/mds/bricks": ["shared/*", "server/mds/meta", "server/mds/state", "server/mds/grants"],
    "server/mds/space": ["shared/*", "server/mds/meta", "server/mds/state", "server/mds/grants", "server/mds/bricks"],
    "server/mds/layout": ["shared/*", "server/mds/meta", "server/mds/state", "server/mds/grants", "server/mds/bricks",
                          "server/mds/space"],
    "server/mds/ops": ["shared/*", "server/mds/meta", "server/mds/state", "server/mds/grants", "server/mds/bricks",
                       "server/mds/space", "server/mds/layout"],
    "server/mds/admin": ["shared/*", "server/console", "server/mds/meta", "server/mds/log", "server/mds/state",
                         "server/mds/grants", "server/mds/bricks", "server/mds/space", "server/mds/layout",
                         "server/mds/ops"],
    "fuse-client": ["shared/*"],
    "cli": ["shared/*", "cli/*"],
    # Its two kinds of connection do not know each other; only what chooses one of them knows both.
    "library": ["shared/base", "shared/version"],
    "library/connect": ["shared/base", "library", "library/session", "library/mounted"],
    "library/session": ["shared/*", "library"],
    "library/mounted": ["shared/base", "shared/ring", "library"],
    "library/blocks": ["shared/*", "library"],
    "library/preload": ["shared/base", "shared/ring"],  # in other people's programs: nothing of the library
    "tests": ["shared/*", "server/*", "fuse-client/*", "cli/*", "library/*", "tests/*"],
}
# Within a folder: each of these sources may include what stands in the rows above its own, and what is in no row.
FLOORS = {
    "shared/initiator/file": ["layout_cache dirty_list kept_writes exclusion patience mount all_files", "file_state",
                              "barrier through_mds layout_getter verifier_check", "restorer", "committer",
                              "growth_room brick_flusher", "flusher", "file_sync brick_io returner words read_back watcher", "pending_io signals", "transfer truncater",
                              "inside", "file_io", "file_table"],
}
# Of the server's parts (server/mds/ops/services.h) each source of server/mds/ops reaches these and no others: a handler that
# wants one more says so here.
SERVICES_OF = {
    "attribute_operations": "layouts names store",
    "attribute_values": "clock data exports handles identity limits names",
    "close_operations": "layouts leases locks opens state_store",
    "compound": "clients clock counters delegations exports store turns",
    "compound_context": "clock counters delegations exports grace locks names opens user_groups",
    "create_session_operation": "clients leases limits sessions state_store",
    "data_handlers": "data",
    "data_service": "callbacks clock counters delegations exports handles limits opens random store",
    "delegated_times": "clock names",
    "delegation_grant": "clock delegations grace handles layouts limits names opens random",
    "delegation_operations": "delegations",
    "directory_operations": "delegations exports layouts names",
    "done_operations": "delegations exports names opens",
    "exchange_id_operation": "clients data identity leases limits opens",
    "handle_operations": "exports handles names",
    "held_attributes": "clock delegations names",
    "layout_operations": "counters delegations opens",
    "lock_operations": "clock handles leases limits lock_waiters locks random state_store",
    "lookup_operations": "exports names",
    "new_inode": "names",
    "open_operation": "clock exports layouts limits names opens random state_store",
    "read_directory": "exports names",
    "sequence_operation": "clients counters delegations limits sessions store",
    "session_operations": "clients delegations grace layouts leases opens sessions state_store",
    "settable_attributes": "clock",
    "size_change": "delegations layouts names",
    "stateid_operations": "data delegations layouts locks opens state_store",
    "xattr_operations": "names",
}
LINES_MAX = 700
LINE_WIDTH_MAX = 120


def tracked(*endings):
    names = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
    return [ROOT / name for name in names if name.endswith(endings) and (ROOT / name).exists()]


def owner(name):
    stem = name.rsplit(".", 1)[0]
    return max((known for known in MAY_INCLUDE if name.startswith(known + "/") or stem == known), key=len, default=None)


def allows(entry, target):
    return target == entry or (entry.endswith("/*") and (target + "/").startswith(entry[:-1]))


class Structure(unittest.TestCase):
    def test_includes_point_one_way(self):
        bad = []
        for path in tracked(".cc", ".h"):
            name = str(path.relative_to(ROOT))
            folder = owner(name)
            self.assertIsNotNone(folder, f"{name} is in no known folder: add it to MAY_INCLUDE")
            for include in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M):
                target = owner(include)
                allowed = MAY_INCLUDE[folder] + [folder]
                if target is None or not any(allows(entry, target) for entry in allowed):
                    bad.append(f"{name} includes {include}")
        self.assertEqual(bad, [])

    def test_floors_point_one_way(self):
        bad = []
        for folder, rows in FLOORS.items():
            floor = {f"{folder}/{name}": i for i, row in enumerate(rows) for name in row.split()}
            for path in tracked(".cc", ".h"):
                stem = str(path.relative_to(ROOT)).rsplit(".", 1)[0]
                if stem.rsplit("/", 1)[0] != folder:
                    continue
                for include in re.findall(r'^#include "([^"]+)\.h"', path.read_text(), re.M):
                    if include != stem and floor.get(include, -1) >= floor.get(stem, 0):
                        bad.append(f"{path.relative_to(ROOT)} includes {include}.h")
        self.assertEqual(bad, [])

    def test_operations_reach_what_they_need(self):
        reached = {path.stem: " ".join(sorted(set(found))) for path in tracked(".cc") if path.parent == ROOT / "server/mds/ops"
                   and (found := re.findall(r"(?<!/)\bservices_?\.(\w+)", path.read_text()))}
        self.assertEqual(reached, SERVICES_OF)

    def test_threads_and_times_go_through_sync_h(self):
        # What the simulator cannot hold it cannot test (shared/base/sync.h).
        forbidden = re.compile(r"std::(?:recursive_|shared_|timed_)?mutex\b|std::condition_variable|std::j?thread\b|std::this_thread"
                               r"|std::call_once|steady_clock::now|(?<![\w:])(?:::)?(?:sched_yield|nanosleep|usleep|sleep)\(")
        bad = [f"{p.relative_to(ROOT)}: {found.group(0)}" for p in tracked(".cc", ".h")
               if p.relative_to(ROOT).parts[0] in ("shared", "server", "fuse-client", "cli", "library") and p.name != "sync.h"
               and not {"bench", "examples"} & set(p.parts)  # programs as anybody writes them
               for found in forbidden.finditer(p.read_text())]
        self.assertEqual(bad, [])

    def test_only_verbs_includes_infiniband(self):
        bad = [str(p) for p in tracked(".cc", ".h")
               if "#include <infiniband/" in p.read_text() and "shared/rdma/verbs/" not in str(p)]
        self.assertEqual(bad, [])

    def test_files_are_small(self):
        bad = [f"{p.relative_to(ROOT)}: {n} lines" for p in tracked(".cc", ".h", ".py", ".sh", ".ts", ".tsx", ".mjs", ".css")
               if (n := len(p.read_text().splitlines())) > LINES_MAX]
        self.assertEqual(bad, [])

    def test_lines_are_short(self):
        bad = [f"{p.relative_to(ROOT)}:{i}" for p in tracked(".cc", ".h")
               for i, line in enumerate(p.read_text().splitlines(), 1) if len(line) > LINE_WIDTH_MAX]
        self.assertEqual(bad, [])

    def test_comments_are_whole(self):
        # A formatter that wraps a comment at another width leaves a word or two alone on a line, in mid-sentence.
        bad = []
        for path in tracked(".cc", ".h"):
            lines = path.read_text().splitlines()
            for i in range(1, len(lines) - 1):
                before, line, after = (re.match(r"(\s*)// (\S.*)$", text) for text in lines[i - 1:i + 2])
                if not (before and line and after) or len({m.group(1) for m in (before, line, after)}) != 1:
                    continue
                if line.group(2)[-1] in ".:;|" or re.match(r"[-*|`\d]", after.group(2)):
                    continue
                if len(lines[i]) + 1 + len(after.group(2).split()[0]) <= 70:
                    bad.append(f"{path.relative_to(ROOT)}:{i + 1}")
        self.assertEqual(bad, [])

    def test_headings_are_one_line(self):
        bad = [f"{p.relative_to(ROOT)}: {found.group(1)}" for p in tracked(".cc", ".h")
               for found in re.finditer(r"^ *// --- (.*)\n *// -{10,}$", p.read_text(), re.M)]
        self.assertEqual(bad, [])

    def test_every_source_names_its_licence(self):
        bad = [str(p.relative_to(ROOT)) for p in tracked(".cc", ".h", ".py", ".sh", ".ts", ".tsx", ".mjs", ".css", "CMakeLists.txt", ".cmake")
               if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(p.read_text().splitlines()[:3])]
        self.assertEqual(bad, [])

    def test_no_package_host_is_named(self):
        # A lock file that names where its packages came from works at that place only (web/.npmrc).
        bad = [str(p.relative_to(ROOT)) for p in tracked("package-lock.json") if '"resolved"' in p.read_text()]
        self.assertEqual(bad, [])

    def test_every_source_folder_has_a_readme(self):
        folders = {p.parent for p in tracked(".cc", ".h") if "tests" not in p.relative_to(ROOT).parts}
        bad = [str(f.relative_to(ROOT)) for f in folders if not (f / "README.md").exists()]
        self.assertEqual(bad, [])

    def test_names_are_spelled_out(self):
        bad = []
        for path in tracked(".cc", ".h"):
            if re.search(r"(^|_)(util|utils|mgr|ctx|misc|helpers?)(_|$)", path.stem):
                bad.append(str(path.relative_to(ROOT)))
        self.assertEqual(bad, [])


if __name__ == "__main__":
    unittest.main()
