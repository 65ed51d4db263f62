#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What can be wrong where RDMA is set up: each is said with its cause and what to do about it.
. /source/tests/vm/guest/cases.sh
. /source/tests/vm/guest/brick.sh
unlucky=65534 # nobody

# What a brick says on these media and addresses within two seconds, as it stands or as it ends.
brick_says() { # pool, data.rdma, words...
  local pool=$1 rdma=$2 words
  shift 2
  mkdir -p "$brick_home"
  cat >"$brick_home/brick.json" <<JSON
{"pool": $pool, "control": {"unix": "$brick_home/control.sock"}, "data": {"listen": ["127.0.0.1:12051"], "rdma": $rdma}}
JSON
  "$bin/pnfsrdma-brickd" --config "$brick_home/brick.json" --format --force
  timeout --preserve-status 8 "${as_whom[@]}" "$bin/pnfsrdma-brickd" --config "$brick_home/brick.json" >"$brick_home/said" 2>&1 || true
  cat "$brick_home/said"
  for words in "$@"; do grep -qF -- "$words" "$brick_home/said"; done
}
as_whom=()

an_address_nobody_has() {
  brick_says '{"path": "/dev/dax0.0"}' '["10.77.0.99:20052"]' "no RDMA device has the address 10.77.0.99" 'rdma link'
}
no_address() {
  ip address flush dev v0
  trap 'ip address add 10.77.0.1/24 dev v0' EXIT
  brick_says '{"path": "/dev/dax0.0"}' '["auto"]' "no-rdma-address" "ip address add"
}
a_file_that_cannot_be_pinned() {
  modprobe -a loop ext4
  truncate -s 200M /tmp/disk
  mkfs.ext4 -q -F /tmp/disk
  mkdir -p /tmp/ext4
  mount -o loop /tmp/disk /tmp/ext4
  trap 'umount /tmp/ext4' EXIT
  brick_says '{"path": "/tmp/ext4/pool", "size": "64M"}' '["auto"]' "cannot be pinned for RDMA" "use device DAX, tmpfs or hugetlbfs"
}
no_permission() {
  chmod 600 /dev/infiniband/*
  chmod 666 /dev/dax0.0
  mkdir -p "$brick_home"
  chown "$unlucky" "$brick_home"
  chmod 711 /root
  trap 'chmod 666 /dev/infiniband/*; chown 0 "$brick_home"; chmod 700 /root' EXIT
  as_whom=(setpriv --reuid "$unlucky" --regid "$unlucky" --clear-groups)
  brick_says '{"path": "/dev/dax0.0"}' '["auto"]' "no permission to use /dev/infiniband" "udev rule"
}
too_little_locked_memory() {
  mkdir -p /tmp/mount
  if setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock prlimit --memlock=65536:65536 \
    "$bin/pnfsrdma-fuse" -o proto=rdma 10.77.0.1:/ /tmp/mount >/tmp/said 2>&1; then
    umount /tmp/mount
    return 1
  fi
  cat /tmp/said
  grep -qF "RLIMIT_MEMLOCK is 64 KiB" /tmp/said
  grep -qF "LimitMEMLOCK=infinity" /tmp/said
}

case_of "an address that no device has" an_address_nobody_has
case_of "a device without an address" no_address
case_of "a mapping that cannot be pinned" a_file_that_cannot_be_pinned
case_of "no permission" no_permission
case_of "too little locked memory" too_little_locked_memory
finish
