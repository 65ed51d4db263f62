#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots the systemd of the tree ROOT (a mount point) as the first process of namespaces of its own: processes, mounts, network,
# host name, control groups below GROUP. Ends when it powers off; it dies with this script.
# usage: boot.sh ROOT GROUP      (root, in a mount namespace of its own)
set -euo pipefail
root=${1:?usage: boot.sh ROOT GROUP}
group=${2:?usage: boot.sh ROOT GROUP}
echo 0 >"$group/cgroup.procs"

inside() {
  set -euo pipefail
  mount --make-rprivate /
  cd "$root"
  mount -t proc proc proc
  mount --bind proc/sys proc/sys # the host's kernel keeps its settings
  mount -o remount,bind,ro proc/sys
  mount -t sysfs -o ro sysfs sys
  mount -t cgroup2 cgroup2 sys/fs/cgroup
  mount -t tmpfs -o mode=755 tmpfs run
  cat /proc/sys/kernel/random/uuid >run/boot_id # a boot is a boot: for the journal, and for the daemons
  mount --bind run/boot_id proc/sys/kernel/random/boot_id
  mount -t tmpfs -o mode=755 tmpfs dev
  mkdir dev/pts dev/shm
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
  mount -t tmpfs tmpfs dev/shm
  ln -s pts/ptmx dev/ptmx
  local node
  for node in null zero full random urandom tty fuse autofs; do
    if [ -e "/dev/$node" ]; then cp -a "/dev/$node" "dev/$node"; fi
  done
  chmod 666 dev/{null,zero,full,random,urandom,tty,fuse}
  hostname pnfsrdma-test
  ip link set lo up
  mkdir -p outside
  pivot_root . outside
  umount -l /outside
  rmdir /outside
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=pnfsrdma-test LC_ALL=C.UTF-8 \
    /lib/systemd/systemd --log-target=journal --show-status=no --system
}
export -f inside
export root
exec unshare --pid --fork --kill-child=KILL --mount --net --uts --ipc --cgroup --propagation private bash -c inside
