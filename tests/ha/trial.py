# SPDX-License-Identifier: Apache-2.0
"""An installation that is removed at the end, however that comes: also after Ctrl-C, SIGTERM and SIGHUP."""
import contextlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile

import network
from installation import SERVERS, Installation, take_away

SKIPPED = 77
FOLDERS = "/var/tmp"  # on a disk: three members of etcd, two MDSs and two pools of 256 MiB
LAST_LINES = 20


def why_not():
    """Why nothing of this can run here, or None."""
    if why := network.why_not():
        return why
    missing = [program for program in ("etcd", "nsenter", "bridge") if shutil.which(program) is None]
    return f"{missing[0]} is not installed (packaging/dependencies.sh ha)" if missing else None


def end_by_signal(number, _):
    raise SystemExit(128 + number)


def show_last_words(system):
    for name in SERVERS:
        path = system.home / "logs" / f"{name}.log"
        if path.exists():
            words = path.read_text(errors="replace").splitlines()[-LAST_LINES:]
            print("\n".join([f"--- {name}", *words]), file=sys.stderr)


@contextlib.contextmanager
def trial(binaries, clients=1, home=None, prefix=None, stays=False, kept_logs=None):
    """`stays`: it is left running when all went well. `kept_logs`: where its folder of logs goes when something did not."""
    if why := why_not():
        print(f"skipped: {why}")
        raise SystemExit(SKIPPED)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_by_signal)
    prefix = prefix or f"pnfsrdma-trial{os.getpid()}"
    home = home or tempfile.mkdtemp(prefix="pnfsrdma-ha.", dir=FOLDERS)
    take_away(prefix, home)
    system, well = None, False
    try:
        system = Installation(binaries, home, prefix, clients)
        yield system
        well = True
    except BaseException:
        if system:
            show_last_words(system)
        raise
    finally:
        if not (well and stays):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            if kept_logs and not well:
                shutil.copytree(pathlib.Path(home) / "logs", kept_logs, dirs_exist_ok=True)
            if system:
                system.close()
            take_away(prefix, home)
