#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages under a real systemd: what the units promise is done to the daemons, and watched.

usage: systemd_test.py TREE PACKAGES NEWER_PACKAGES      (root, in a mount namespace of its own: own_mounts.sh; 77: not possible here)
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from machine import Impossible, Machine

BASE, PACKAGES, NEWER = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
BRICK, MDS = "pnfsrdma-brickd.service", "pnfsrdma-mdsd.service"
MOUNT = "/srv/pmem"
# One number a line, each in the file before the next is written; it says when a write fails.
WRITER = f"for n in $(seq 1 100000); do echo $n >>{MOUNT}/writer || echo failed >>/root/writer.failed; sleep 0.02; done"


def case(what):
    print(f"  ok  {what}", flush=True)


def packages_in(machine, folder):
    """What they depend on is there before: the machine has no network."""
    debs = [f"/out/{path.relative_to(PACKAGES.parent)}" for path in sorted(folder.glob("*.deb"))]
    return machine.run("apt-get", "-y", "-o", "Dpkg::Options::=--force-confold", "install", *debs, timeout=300)


def process(machine, unit):
    return int(machine.show(unit, "MainPID"))


def host_process(machine, unit):
    """Of the unit's daemon, as the host counts: through its control group."""
    return int((machine.group.path / f"system.slice/{unit}/cgroup.procs").read_text().split()[0])


def install(machine):
    packages_in(machine, PACKAGES)
    for unit in (BRICK, MDS):
        assert machine.show(unit, "ActiveState") == "active", machine.run("systemctl", "status", unit, check=False).stdout
        assert machine.run("systemctl", "is-enabled", unit).stdout.strip() == "enabled"
    failed = machine.run("systemctl", "--failed", "--no-legend").stdout
    assert failed == "", failed
    case("apt install starts both daemons; they are enabled, and no unit has failed")


def completion(machine):
    """Each shell asks the program itself; bash and fish can be asked what they would offer, zsh takes its file."""
    offered = machine.run("fish", "-c", "complete -C 'pnfsrdma exp'").stdout
    assert offered.startswith("export\t"), offered
    offered = machine.run("bash", "-c", ". /usr/share/bash-completion/completions/pnfsrdma; COMP_WORDS=(pnfsrdma exp); COMP_CWORD=1; "
                          "_pnfsrdma; echo ${COMPREPLY[@]}").stdout
    assert offered == "export\n", offered
    machine.run("zsh", "-fc", "autoload -Uz compinit && compinit -u -D && whence -w _pnfsrdma | grep -q function && "
                "test ${_comps[pnfsrdma]} = _pnfsrdma")
    case("completion: fish and bash offer, zsh has its function")


def sandbox(machine):
    for unit in (BRICK, MDS):
        said = machine.run("systemd-analyze", "security", unit).stdout.strip().splitlines()[-1]
        level = float(re.search(r"([0-9.]+) (OK|SAFE)", said)[1])
        number = host_process(machine, unit)
        status = dict(re.findall(r"^(\w+):\s*(.*)$", pathlib.Path(f"/proc/{number}/status").read_text(), re.M))
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2" and int(status["CapBnd"], 16) == 0, status
        assert status["Uid"].split()[0] != "0"
        enter = ["nsenter", f"--target={number}", "--mount", "--root", "sh", "-c"]
        for forbidden in ("ls /home/*", "touch /usr/x", "touch /etc/x", "echo 1 >/proc/sys/kernel/printk"):
            assert subprocess.run([*enter, forbidden], capture_output=True).returncode != 0, (unit, forbidden)
        case(f"{unit}: sandbox in force (no capabilities, system calls filtered, /usr, /etc, /home closed); exposure {level} {said.split()[-2]}")


def journal(machine):
    found = [json.loads(line) for line in machine.journal("-o", "json", "PNFSRDMA_EVENT=not-persistent-memory").splitlines()]
    assert found, machine.journal("-u", BRICK)
    assert found[0]["_SYSTEMD_UNIT"] == BRICK and found[0]["PRIORITY"] == "4", found[0]
    for line in machine.journal("-o", "json", "-u", BRICK, "-u", MDS).splitlines():
        assert isinstance(json.loads(line)["MESSAGE"], str), f"not a line of text: {bytes(json.loads(line)['MESSAGE'])}"
    fields = sorted(key for key in found[0] if key.startswith("PNFSRDMA_"))
    case(f"journal: events by name and unit, priority warning, fields {' '.join(fields)}")


def automount(machine):
    machine.sh(f"mkdir {MOUNT}; echo '127.0.0.1:/ {MOUNT} pnfsrdma _netdev,nofail,noatime,x-systemd.automount 0 0' >>/etc/fstab; "
               "systemctl daemon-reload; systemctl start srv-pmem.automount")
    assert machine.show("srv-pmem.mount", "ActiveState") == "inactive"
    machine.sh(f"cd {MOUNT}; mkdir a; head -c 9000000 /dev/urandom >a/big; sha256sum a/big >sums; sync")
    assert machine.show("srv-pmem.mount", "ActiveState") == "active"
    status = machine.sh(f"pnfsrdma stat {MOUNT}")
    assert "iwarp" in status, status
    case("fstab with x-systemd.automount: mounted when first looked at; data goes by RDMA (iwarp)")


def reload(machine):
    before = {unit: process(machine, unit) for unit in (BRICK, MDS)}
    for name, unit in (("brickd", BRICK), ("mdsd", MDS)):
        path = f"/etc/pnfsrdma/{name}.json"
        machine.sh(f"cp {path} /root/{name}.json; sed -i '0,/^{{/s//{{ \"log_level\": \"debug\",/' {path}; systemctl reload {unit}")
        machine.wait_for("the reload", lambda unit=unit: "reloaded" in machine.journal("-u", unit))
        machine.sh(f"echo '{{' >{path}")
        assert machine.run("systemctl", "reload", unit, check=False).returncode != 0
        assert f"pnfsrdma-{name}: {path}" in machine.journal("-u", unit, "-o", "cat"), machine.journal("-u", unit, "-n", "20")
        machine.sh(f"cp /root/{name}.json {path}; systemctl reload {unit}")
        assert process(machine, unit) == before[unit] and machine.show(unit, "ActiveState") == "active"
    case("systemctl reload takes a new log level; a file with a mistake is refused; the daemons run on")


def written(machine):
    return int((machine.sh(f"tail -n 1 {MOUNT}/writer || true").split() or ["0"])[0])


def goes_on(machine):
    """The writer gets on, from wherever it is."""
    before = written(machine)
    machine.wait_for("the writer", lambda: written(machine) > before, 120)


def restarts(machine):
    machine.run("systemd-run", "--unit=writer", "sh", "-c", WRITER)
    machine.wait_for("the writer", lambda: machine.run("test", "-s", f"{MOUNT}/writer", check=False).returncode == 0)
    brick = process(machine, BRICK)
    machine.run("systemctl", "restart", MDS)
    goes_on(machine)
    assert process(machine, BRICK) == brick
    case("systemctl restart of the MDS under a writer: the brick stays, the writer goes on")
    mds = process(machine, MDS)
    machine.run("systemctl", "restart", BRICK)
    goes_on(machine)
    assert process(machine, MDS) == mds
    case("systemctl restart of the brick under a writer: the MDS stays, the writer goes on")


def started_anew(machine, unit, before, how):
    machine.wait_for(f"{unit} to be started again",
                     lambda: process(machine, unit) not in (0, before) and machine.show(unit, "ActiveState") == "active")
    assert int(machine.show(unit, "NRestarts")) >= 1
    goes_on(machine)
    case(f"{unit}: {how}; systemd started it again, the writer goes on")


def deaths(machine):
    for unit in (BRICK, MDS):
        before = process(machine, unit)
        os.kill(host_process(machine, unit), signal.SIGKILL)
        started_anew(machine, unit, before, "killed")
    machine.sh("for unit in brickd mdsd; do mkdir -p /run/systemd/system/pnfsrdma-$unit.service.d; "
               "printf '[Service]\\nWatchdogSec=4s\\n' >/run/systemd/system/pnfsrdma-$unit.service.d/watchdog.conf; done; "
               f"systemctl daemon-reload; systemctl restart {BRICK} {MDS}")
    time.sleep(9)  # two periods and more
    for unit in (BRICK, MDS):
        assert machine.show(unit, "NRestarts") == "0", f"{unit} does not ping a watchdog of 4 s"
        before = process(machine, unit)
        os.kill(host_process(machine, unit), signal.SIGSTOP)
        started_anew(machine, unit, before, "stopped, so that it does not ping the watchdog")
        assert "Watchdog timeout" in machine.journal("-u", unit), machine.journal("-u", unit)
    machine.sh("rm -r /run/systemd/system/pnfsrdma-*.service.d; systemctl daemon-reload; "
               f"systemctl reset-failed {BRICK} {MDS}; systemctl restart {BRICK} {MDS}")


def autofs(machine):
    example = machine.sh("cat /usr/share/doc/pnfsrdma-fuse/examples/auto.pnfsrdma")
    machine.sh("cat >/etc/auto.pnfsrdma; mkdir -p /etc/auto.master.d; "
               "echo '/net/pmem /etc/auto.pnfsrdma --timeout=300' >/etc/auto.master.d/pnfsrdma.autofs; systemctl restart autofs",
               input=example.replace("server.example.com", "127.0.0.1"))
    machine.sh(f"cd /net/pmem/data/ && sha256sum --quiet -c sums && grep -q ' /net/pmem/data fuse' /proc/mounts")
    case("autofs: the example mounts when it is looked at")


def upgrade(machine):
    before = {unit: process(machine, unit) for unit in (BRICK, MDS)}
    packages_in(machine, NEWER)
    for unit in (BRICK, MDS):
        assert machine.show(unit, "ActiveState") == "active" and process(machine, unit) != before[unit]
    goes_on(machine)
    version = machine.run("dpkg-query", "-W", "-f", "${Version}", "pnfsrdma-server").stdout
    case(f"apt upgrades to {version} under a writer: daemons restarted, it goes on")
    failed = machine.run("cat", "/root/writer.failed", check=False).stdout
    assert failed == "", "the writer saw errors"
    machine.run("systemctl", "stop", "writer")
    numbers = [int(word) for word in machine.sh(f"cat {MOUNT}/writer").split()]
    assert numbers == list(range(1, len(numbers) + 1)), "lines of the writer are missing"
    case(f"the writer saw no error in all that, and each of its {len(numbers)} lines is in the file")


def reboot(machine):
    files = f"cd {MOUNT} && sha256sum --quiet -c sums && wc -l <writer"
    lines = machine.sh(files)
    took = machine.power_off()
    assert took < 30, f"power off took {took:.0f} s: something waits for a timeout"
    machine.boot()
    off = machine.run("journalctl", "--no-pager", "-b", "-1").stdout
    assert not re.search("timed out|Failed unmounting|Failed with result", off.split("Stopping")[-1]), off[-3000:]
    for unit in (BRICK, MDS):
        assert machine.show(unit, "ActiveState") == "active"
    assert machine.sh(files) == lines
    case(f"power off (in {took:.1f} s, mounted) and boot: both daemons are there by themselves, and so are the files")
    machine.sh(f"cp {MOUNT}/a/big {MOUNT}/a/copy && sync {MOUNT}/a/copy")
    machine.kill()
    machine.boot()
    machine.sh(f"{files} && cmp a/big a/copy")
    case("everything killed at once, and booted: the files are there")


def firewalls(machine):
    machine.run("firewall-offline-cmd", "--check-config")
    said = machine.run("firewall-offline-cmd", "--info-service=pnfsrdma").stdout
    assert "2049/tcp" in said and "20049/tcp" in said and "20051/tcp" in said, said
    assert "8443/tcp" in machine.run("firewall-offline-cmd", "--info-service=pnfsrdma-console").stdout
    machine.run("firewall-offline-cmd", "--add-service=pnfsrdma")
    case("firewalld reads both services: --check-config, --info-service, --add-service")
    said = machine.run("ufw", "app", "info", "pnfsrdma").stdout
    assert "2049,20049,20051/tcp" in said, said
    assert "8443/tcp" in machine.run("ufw", "app", "info", "pnfsrdma console").stdout
    said = machine.run("ufw", "--dry-run", "allow", "pnfsrdma").stdout
    assert "20049" in said, said
    case("ufw reads both applications: app info, allow")


def remove(machine):
    machine.sh(f"systemctl stop autofs srv-pmem.automount srv-pmem.mount; sed -i /pnfsrdma/d /etc/fstab; systemctl daemon-reload")
    machine.run("apt-get", "-y", "purge", "pnfsrdma-server", "pnfsrdma-fuse", "pnfsrdma", "libpnfsrdma0", timeout=300)
    for unit in (BRICK, MDS):
        assert machine.show(unit, "LoadState") in ("not-found", "masked")
    assert machine.run("pgrep", "pnfsrdma", check=False).stdout == ""
    case("purged: the daemons are stopped, the units gone")


def main():
    with Machine(BASE, PACKAGES.parent) as machine:
        machine.fetch(f"/out/{path.relative_to(PACKAGES.parent)}" for path in sorted(PACKAGES.glob("*.deb")))
        seconds = machine.boot()
        version = machine.run("systemctl", "--version").stdout.split("\n")[0]
        case(f"booted in {seconds:.1f} s: {version}")
        try:
            for step in (install, completion, sandbox, journal, automount, reload, restarts, deaths, autofs, upgrade, reboot, firewalls, remove):
                step(machine)
        except BaseException:
            if machine.first:
                print(machine.journal("-a")[-8000:])
            raise


if __name__ == "__main__":
    try:
        main()
    except Impossible as cause:
        print(f"  --  skipped: {cause}")
        sys.exit(77)
