#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages on a fresh system: installed, started by their units, mounted, upgraded, removed, purged.

usage: install_test.py TREE PACKAGES NEWER_PACKAGES      (root, in a mount namespace of its own: own_mounts.sh)
"""
import pathlib
import subprocess
import sys

from tree import Tree
from unit import Unit

BASE, PACKAGES, NEWER = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
ALL = ("pnfsrdma", "pnfsrdma-fuse", "pnfsrdma-server", "libpnfsrdma0", "libpnfsrdma-dev", "python3-pnfsrdma")
# Those that leave something when they are removed: the others apt(8) does not know any more.
LEAVING = ("pnfsrdma", "pnfsrdma-fuse", "pnfsrdma-server")
DISK_MIB_MAX = 256
BRICK, MDS = "pnfsrdma-brickd.service", "pnfsrdma-mdsd.service"
WRITTEN = "cd /mnt; mkdir -p a/b; head -c 9000000 /dev/urandom >a/b/big; echo small >a/small; sha256sum a/b/big a/small >sums; sync"


def case(what):
    print(f"  ok  {what}", flush=True)


def packages_in(folder):
    return [f"/out/{path.relative_to(PACKAGES.parent)}" for path in sorted(folder.glob("*.deb"))]


def check_installed(tree):
    assert tree.sh("stat -c '%U %a' /var/lib/pnfsrdma").split() == ["pnfsrdma", "750"]
    for unit in (BRICK, MDS):
        assert tree.run("test", "-L", f"/etc/systemd/system/multi-user.target.wants/{unit}").returncode == 0
    for program in ("pnfsrdma-brickd", "pnfsrdma-mdsd", "pnfsrdma-fuse", "pnfsrdma"):
        version = tree.run(program, "--version").stdout
        assert version.startswith(program + " 0.") and "rdma-core" in version, version
    for name in ("brickd", "mdsd"):
        tree.run(f"pnfsrdma-{name}", "--config", f"/etc/pnfsrdma/{name}.json", "--print-config")
    tree.run("bash", "-c", ". /usr/share/bash-completion/completions/pnfsrdma && complete -p pnfsrdma")
    tree.run("test", "-s", "/usr/share/pnfsrdma/web/index.html")
    assert 'SUBSYSTEM=="dax"' in tree.sh("cat /usr/lib/udev/rules.d/60-pnfsrdma.rules")
    assert "udev" in tree.sh("zcat /usr/share/doc/pnfsrdma-server/changelog*.gz")


def mounted(tree, *how):
    """Mounts, checks the files, and unmounts."""
    tree.run("mount", *how)
    tree.sh("cd /mnt && sha256sum --quiet -c sums")
    tree.run("umount", "/mnt")


def use(tree, brick, mds):
    brick.start()
    assert "not-persistent-memory" in brick.said()
    mds.start()
    case("both daemons are ready by their units' command lines, as user pnfsrdma, and ping the watchdog")
    taken = tree.sh("{ dpkg -L pnfsrdma pnfsrdma-fuse pnfsrdma-server | while read -r path; do [ -f \"$path\" ] && echo \"$path\"; done; "
                    "find /var/lib/pnfsrdma -type f; } | sort -u | tr '\\n' '\\0' | du -cm --files0-from=- | tail -n 1")
    assert int(taken.split()[0]) <= DISK_MIB_MAX, taken
    case(f"a fresh server takes {taken.split()[0]} MiB of the disk, at most {DISK_MIB_MAX}")
    tree.run("mount", "-t", "pnfsrdma", "127.0.0.1:/", "/mnt", "-o", "nosuid,nodev,_netdev,nofail,x-systemd.automount")
    tree.sh(WRITTEN)
    status = tree.sh("pnfsrdma stat /mnt")
    assert "iwarp" in status and "power" in status, status
    case("mount -t pnfsrdma; written; data goes by RDMA (iwarp), durability power")
    tree.sh("python3 -c \"import os, pnfsrdma; c = pnfsrdma.connect('127.0.0.1:/'); f = c.open('by-library', os.O_RDWR | os.O_CREAT); "
            "f.pwrite_durable(b'from Python', 0); f.close(); c.close()\"")
    assert tree.sh("cat /mnt/by-library") == "from Python"
    assert "-lpnfsrdma" in tree.sh("grep ^Libs: /usr/lib/*/pkgconfig/pnfsrdma.pc")
    case("a program with the library, by its Python bindings, writes what the mount reads")
    before = brick.process.pid
    mds.stop()
    mds.start()
    tree.sh("cd /mnt && sha256sum --quiet -c sums && echo more >>a/small && sha256sum a/b/big a/small >sums")
    assert brick.process.pid == before and brick.process.poll() is None
    case("the MDS restarts under a mount, the brick goes on")
    tree.run("umount", "/mnt")
    tree.sh("echo '127.0.0.1:/ /mnt pnfsrdma _netdev,nofail,noatime 0 0' >>/etc/fstab")
    mounted(tree, "/mnt")
    mounted(tree, "-a", "-t", "pnfsrdma")
    case("by fstab: mount /mnt, mount -a")
    mounted(tree, "-t", "fuse.pnfsrdma", "127.0.0.1:/", "/mnt", "-o", "ro")
    case("mount -t fuse.pnfsrdma")
    wrong = tree.run("mount", "-t", "pnfsrdma", "127.0.0.1:/", "/mnt", "-o", "nonsense=1", check=False)
    assert wrong.returncode != 0 and "nonsense" in wrong.stderr, wrong
    case("an unknown option is refused by name")
    health = tree.run("pnfsrdma", "health").stdout
    case(f"pnfsrdma health: {health.strip().splitlines()[0]}")
    for unit in (mds, brick):
        unit.stop()
    brick.start()
    mds.start()
    mounted(tree, "/mnt")
    case("both daemons restart, the files are there")


def upgrade(tree, brick, mds):
    tree.sh("sed -i 's/^{/{ \"log_level\": \"debug\",/' /etc/pnfsrdma/mdsd.json")
    for unit in (mds, brick):
        unit.stop()
    old = tree.sh("dpkg-query -W -f '${Version}' pnfsrdma-server")
    tree.apt("install", *packages_in(NEWER))
    new = tree.sh("dpkg-query -W -f '${Version}' pnfsrdma-server")
    assert tree.run("dpkg", "--compare-versions", new, "gt", old).returncode == 0
    assert '"log_level": "debug"' in tree.sh("cat /etc/pnfsrdma/mdsd.json")
    brick.start()
    mds.start()
    mounted(tree, "/mnt")
    case(f"upgraded to {new}: configuration kept, the files are there")
    for unit in (mds, brick):
        unit.stop()


def remains(tree):
    found = tree.sh("find / -xdev \\( -name '*pnfsrdma*' -o -path '*/pnfsrdma/*' \\) -not -path '/tmp/*' -not -path '/out/*' "
                    "-not -path '/proc/*' -not -path '/dev/*' -not -path '/var/log/*' -not -path '/var/cache/*'")
    return found.split()


def remove(tree):
    tree.apt("remove", *ALL)
    left = remains(tree)
    assert "/var/lib/pnfsrdma/pool.img" in left and "/etc/pnfsrdma/mdsd.json" in left, left
    assert not [path for path in left if path.startswith(("/usr/bin", "/usr/sbin", "/usr/share/pnfsrdma", "/lib"))], left
    case("removed: configuration and data stay")
    said = tree.apt("purge", *LEAVING)
    left = [path for path in remains(tree) if not path.startswith("/var/lib/pnfsrdma")]
    assert left == [], left
    assert "are kept" in said and tree.run("test", "-s", "/var/lib/pnfsrdma/pool.img").returncode == 0
    case("purged: nothing is left but the data, and it says so")
    tree.apt("install", *packages_in(PACKAGES))
    tree.apt("purge", *ALL, environment=["PNFSRDMA_PURGE_DATA=yes"])
    assert remains(tree) == [], remains(tree)
    case("purged with PNFSRDMA_PURGE_DATA=yes: nothing is left")


def main():
    with Tree(BASE, PACKAGES.parent) as tree:
        tree.apt("update")
        tree.apt("install", *packages_in(PACKAGES))
        check_installed(tree)
        case("installed on a fresh system with what they depend on: user, folders, units, programs, completion, console")
        units = [Unit(tree.root, name, tree.inside) for name in (BRICK, MDS)]
        try:
            use(tree, *units)
            upgrade(tree, *units)
        except BaseException:
            for unit in units:
                if unit.process:
                    print(f"--- {unit.name}:\n{unit.said()[-4000:]}")
            raise
        finally:
            tree.run("umount", "-l", "/mnt", check=False)
            for unit in units:
                unit.kill()
        remove(tree)


main()
