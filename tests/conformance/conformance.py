#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Third-party test suites on a mount of the real programs, compared with what is expected to fail.

usage: conformance.py BIN SUITES [--only NAME,...] [--seeds N] [--operations N]

SUITES is a folder with whatever of these is there, built; what is missing is skipped and named:
  pjdfstest/  the program `pjdfstest` and tests/*/*.t       cthon04/   `runtests` and its built programs
  fsx         the program (xfstests, LTP)                   fsstress   the program (xfstests, LTP)
  pynfs/      nfs4.1/testserver.py                          xfstests/  built in place
Expected failures stand in expected/SUITE, a case and its reason a line. Exit code: 0 as expected, 1 something else
failed or an expected failure passed, 77 nothing could be run.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))
from cluster import Cluster  # noqa: E402

CASE_SECONDS = 600


class Missing(Exception):
    """What a suite needs is not in the folder."""


def needed(path):
    if not path.exists():
        raise Missing(f"{path} is not there")
    return path


def run(command, seconds=CASE_SECONDS, **options):
    """Exit code and output; 124 when it took too long."""
    try:
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=seconds, stdin=subprocess.DEVNULL, **options)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        text = late.stdout or b""
        return 124, (text.decode(errors="replace") if isinstance(text, bytes) else text) + f"\nnot within {seconds} s"


class Results:
    """The cases of one suite: how many ran, and what failed with the first line that says why."""

    def __init__(self):
        self.ran, self.failed = 0, {}

    def add(self, case, why=None):
        self.ran += 1
        if why is not None:
            self.failed[case] = why

    def add_run(self, case, code, output):
        lines = output.strip().splitlines()
        self.add(case, None if code == 0 else f"exit code {code}: {lines[-1][:160] if lines else ''}")


def tap(file, output, results):
    """The lines "ok 3" and "not ok 4 - …" of one pjdfstest file; a plan that is not kept is a failure, too. "not ok 5 # TODO" is
    none: the suite itself expects it of Linux."""
    plan = re.search(r"^1\.\.(\d+)", output, re.M)
    seen = re.findall(r"^(not )?ok (\d+)(.*)$", output, re.M)
    for bad, number, rest in seen:
        expected = re.match(r"[ -]*# TODO\b", rest, re.I)
        results.add(f"{file} {number}", rest.strip(" -")[:160] or "not ok" if bad and not expected else None)
    wanted = int(plan.group(1)) if plan else None
    if wanted is None or wanted != len(seen):
        results.add(f"{file} plan", f"{len(seen)} of {wanted} results")


def pjdfstest(suites, cluster, options):
    folder = needed(suites / "pjdfstest")
    needed(folder / "pjdfstest")
    mount, results = cluster.mount(), Results()
    for script in sorted(folder.glob("tests/*/*.t")):
        name = f"{script.parent.name}/{script.stem}"
        place = mount / name.replace("/", "-")
        place.mkdir()
        place.chmod(0o755)
        tap(name, run(["bash", script], cwd=place)[1], results)
    return results


def cthon04(suites, cluster, options):
    folder = needed(suites / "cthon04")
    needed(folder / "basic" / "test1")
    mount, results = cluster.mount(), Results()
    for name, flag in (("basic", "-b"), ("general", "-g"), ("special", "-s"), ("lock", "-l")):
        place = mount / f"cthon-{name}"
        code, output = run(["sh", "./runtests", flag, "-t", place], cwd=folder)
        results.add_run(name, code, output)
    return results


def fsx(suites, cluster, options):
    """Two mounts of one export at once, a file each; also that no layout was revoked."""
    program, results = needed(suites / "fsx"), Results()
    mounts = [cluster.mount(), cluster.mount()]
    kinds = {"buffered": ["-W", "-R"], "direct": ["-Z", "-r", "4096", "-w", "4096", "-t", "1", "-W", "-R"], "mapped": []}
    for kind, flags in kinds.items():
        for seed in range(1, options.seeds + 1, len(mounts)):
            running = []
            for step, mount in enumerate(mounts):
                case = f"{kind} {seed + step}"
                command = [program, "-q", "-S", seed + step, "-N", options.operations, "-P", cluster.home, *flags,
                           mount / f"{kind}.{seed + step}"]
                running.append((case, subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE,
                                                       stderr=subprocess.STDOUT, text=True, errors="replace")))
            for case, process in running:
                output = process.communicate()[0]
                results.add_run(case, process.returncode, output)
    revoked = cluster.log("mds").count("layout-revoked")
    results.add("no layout is revoked", f"{revoked} were" if revoked else None)
    return results


def fsstress(suites, cluster, options):
    program, results = needed(suites / "fsstress"), Results()
    mount = cluster.mount()
    for seed in range(1, 4):
        place = mount / f"stress{seed}"
        place.mkdir()
        results.add_run(f"seed {seed}", *run([program, "-d", place, "-n", options.operations // 50, "-p", 4, "-s", seed]))
        results.add_run(f"seed {seed}, removed", *run(["rm", "-rf", place]))
    return results


def pynfs(suites, cluster, options):
    server = needed(suites / "pynfs" / "nfs4.1" / "testserver.py")
    results = Results()
    for minor in (1, 2):
        answers = cluster.home / f"pynfs{minor}.json"
        # Debian's own Python has the modules it needs (python3-ply, python3-gssapi).
        code, output = run(["/usr/bin/python3", server, f"127.0.0.1:{cluster.nfs_port}:/", "--maketree", "--hidepass",
                            f"--minorversion={minor}", f"--json={answers}", "all"], 3600, cwd=server.parent)
        if not answers.exists():
            results.add_run(f"{minor} all", code or 1, output)
            continue
        for case in json.loads(answers.read_text())["testcase"]:
            if "skipped" not in case:
                failure = case.get("failure")
                results.add(f"{minor} {case['code']}", failure and failure["message"].replace("\n", " ")[:160])
    return results


# What `check` needs to know, a bash script. It compares what is mounted with what it asked for, so the devices have the names
# that /proc/mounts has, and the type is "fuse". In place of mount(8), which knows installed programs only, ours is called as
# mount(8) would (suid and dev are the default then).
XFSTESTS_CONFIG = """
export FSTYP=fuse FUSE_SUBTYP=.pnfsrdma
export TEST_DEV='127.0.0.1:/test[iwarp+power]' TEST_DIR={home}/test
export SCRATCH_DEV='127.0.0.1:/scratch[iwarp+power]' SCRATCH_MNT={home}/scratch
export RESULT_BASE={home}/results
export MOUNT_PROG=mount_program DF_PROG=df_program
mount_program() {{
  [ "$1 $2" = "-t fuse.pnfsrdma" ] || {{ command mount "$@"; return; }}
  set -- "${{@/#127.0.0.1:/127.0.0.1:{port}:}}"
  (exec -a mount.pnfsrdma {fuse} "${{@/%\\[*\\]/}}")
}}
df_program() {{
  command df -T -P "$@" | sed 's/fuse\\.pnfsrdma/fuse/'
}}
export -f mount_program df_program
"""


def first_difference(wanted, seen):
    """The first line of the file `seen` that is not in `wanted`."""
    known = wanted.read_text(errors="replace").splitlines() if wanted.exists() else []
    lines = seen.read_text(errors="replace").splitlines() if seen.exists() else []
    return next((line[:160] for line in lines if line not in known), "something is missing in its output")


def xfstests(suites, cluster, options):
    """The group `quick` of the tests for any file system; what `check` finds not to concern us it does not run."""
    folder, results = needed(suites / "xfstests"), Results()
    needed(folder / "ltp" / "fsstress")
    mount = cluster.mount()
    for name in ("test", "scratch"):
        (mount / name).mkdir()
        (cluster.home / name).mkdir()
    mount.unmount()
    config = cluster.home / "xfstests.config"
    config.write_text(XFSTESTS_CONFIG.format(home=cluster.home, port=cluster.nfs_port, fuse=cluster.program("fuse")))
    code, output = run(["./check", "-fuse", "-R", "xunit-quiet", "-g", "generic/quick"], 6 * 3600, cwd=folder,
                       env={**os.environ, "HOST_OPTIONS": str(config)})
    for name in ("test", "scratch"):
        run(["umount", "-l", cluster.home / name])
    report = cluster.home / "results" / "result.xml"
    if not report.exists():
        results.add_run("check", code or 1, output)
        return results
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        name = case.get("name")
        if case.find("skipped") is None:
            results.add(name, None if case.find("failure") is None else
                        first_difference(folder / "tests" / f"{name}.out", cluster.home / "results" / f"{name}.out.bad"))
    return results


SUITES = {"pjdfstest": (pjdfstest, {}), "cthon04": (cthon04, {}), "fsx": (fsx, {}), "fsstress": (fsstress, {}),
          "pynfs": (pynfs, {"lease_seconds": 10, "insecure": True}), "xfstests": (xfstests, {"pool_size": "8G"})}


def expected_of(name):
    """{case: reason} of expected/NAME: "case: reason" lines; # begins a comment."""
    path = HERE / "expected" / name
    lines = path.read_text().splitlines() if path.exists() else []
    pairs = [line.split(": ", 1) for line in lines if line.strip() and not line.startswith("#")]
    wrong = [pair[0] for pair in pairs if len(pair) < 2 or not pair[1].strip()]
    if wrong:
        raise SystemExit(f"{path}: no reason is given for {', '.join(wrong)}")
    return dict(pairs)


def judge(name, results, seconds):
    expected = expected_of(name)
    news = {case: why for case, why in results.failed.items() if case not in expected}
    mended = [case for case in expected if case not in results.failed]
    print(f"{name}: {results.ran} cases, {len(results.failed)} failed ({len(results.failed) - len(news)} as expected), "
          f"{seconds:.0f} s", flush=True)
    for case, why in news.items():
        print(f"  FAILED {case}: {why}")
    for case in mended:
        print(f"  PASSED {case}: strike it from expected/{name}")
    return not news and not mended


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path, help="folder of the programs")
    parser.add_argument("suites", type=pathlib.Path, help="folder of the suites")
    parser.add_argument("--only", default=",".join(SUITES), help="suites, by comma (default: all)")
    parser.add_argument("--seeds", type=int, default=8, help="of fsx, for each kind (default: 8)")
    parser.add_argument("--operations", type=int, default=100_000, help="of fsx, for each seed (default: 100000)")
    options = parser.parse_args()
    unknown = set(options.only.split(",")) - set(SUITES)
    if unknown:
        parser.error(f"no such suite: {', '.join(sorted(unknown))} (there are: {', '.join(SUITES)})")
    if not options.suites.is_dir():
        parser.error(f"{options.suites} is no folder")
    os.umask(0o022)
    good, skipped, ran = True, [], 0
    for name in options.only.split(","):
        suite, cluster_options = SUITES[name]
        with Cluster(options.bin.resolve(), pool_directory="/var/tmp", **cluster_options) as cluster:
            cluster.start_all()
            begin = time.monotonic()
            try:
                results = suite(options.suites.resolve(), cluster, options)
            except Missing as missing:
                skipped.append(f"{name}: {missing}")
                continue
            good = judge(name, results, time.monotonic() - begin) and good
            ran += 1
    for line in skipped:
        print(f"skipped {line}")
    return 77 if ran == 0 else 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
