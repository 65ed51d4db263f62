#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A brick on device DAX, and no RDMA device: the demo over our iWARP, and the durability class a mount may insist on.
. /source/tests/vm/guest/cases.sh
export PNFSRDMA_DEMO=/tmp/device-dax

start() {
  # shellcheck source=tests/demo/common.sh
  . /source/tests/demo/common.sh
  rm -rf "$home"
  mkdir -p "$home"/{brick,mds,logs} "$mount_point"
  write_configs
  format_pool
  start_daemons
}
stop() {
  # shellcheck source=tests/demo/common.sh
  . /source/tests/demo/common.sh
  stop_everything
}
mount_with() {
  mkdir -p "$PNFSRDMA_DEMO/mount"
  "$bin/pnfsrdma-fuse" -o "$1" 127.0.0.1:12049:/ "$PNFSRDMA_DEMO/mount"
}

# The mount knows the device from the first layout on.
shows_class() {
  dd if=/dev/urandom of="$PNFSRDMA_DEMO/mount/file" bs=1M count=2 conv=fsync status=none
  [ "$(getfattr --only-values -n user.pnfsrdma.durability "$PNFSRDMA_DEMO/mount")" = "$1" ]
}

the_mount_says_power() {
  mount_with require_durability=persistent
  grep " $PNFSRDMA_DEMO/mount " /proc/mounts
  shows_class power
  umount "$PNFSRDMA_DEMO/mount"
}
the_mount_is_refused() {
  if mount_with require_durability=persistent; then
    umount "$PNFSRDMA_DEMO/mount"
    echo "a mount that requires persistence was given volatile memory"
    return 1
  fi
  mount_with soft
  shows_class volatile
  umount "$PNFSRDMA_DEMO/mount"
}

rdma link delete rxe0
trap 'rdma link add rxe0 type rxe netdev v0' EXIT
export PNFSRDMA_DEMO_POOL='{"path": "/dev/dax0.0"}'
case_of "the demo's checks pass over iwarp" demo
case_of "a brick on device DAX starts" start
if passed; then
  case_of "its class is power, and require_durability=persistent is content" the_mount_says_power
fi
case_of "it stops" stop
# A brick on ordinary memory never claims to survive loss of power.
export PNFSRDMA_DEMO_POOL='{"path": "/dev/shm/pool", "size": "256M"}'
case_of "a brick on a tmpfs file starts" start
if passed; then
  case_of "require_durability=persistent refuses volatile memory" the_mount_is_refused
fi
case_of "it stops too" stop
rm -f /dev/shm/pool
finish
