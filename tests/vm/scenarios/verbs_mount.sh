#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A brick on device DAX that serves real verbs, and a mount that finds them: the demo, and what the mount says.
. /source/tests/vm/guest/cases.sh
export PNFSRDMA_DEMO=/tmp/verbs-mount PNFSRDMA_DEMO_POOL='{"path": "/dev/dax0.0"}' PNFSRDMA_DEMO_SERVER=10.77.0.1
export PNFSRDMA_DEMO_DATA_LISTEN=10.77.0.1:12051

the_data_goes_by_verbs() {
  # shellcheck source=tests/demo/common.sh
  . /source/tests/demo/common.sh
  rm -rf "$home"
  mkdir -p "$home"/{brick,mds,logs} "$mount_point"
  write_configs
  format_pool
  start_daemons
  mount_it
  dd if=/dev/urandom of=/tmp/random bs=1M count=8 status=none
  before=$(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts)
  dd if=/tmp/random of="$mount_point/file" bs=1M oflag=direct conv=fsync status=none
  dd if="$mount_point/file" bs=1M iflag=direct status=none | cmp - /tmp/random
  after=$(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts)
  getfattr -d -m - "$mount_point"
  echo "packets over rxe0: $((after - before))"
  # 16 MiB in packets of at most 4 KiB.
  [ $((after - before)) -ge 4096 ]
  getfattr --only-values -n user.pnfsrdma.transport "$mount_point" | grep -q verbs
  getfattr --only-values -n user.pnfsrdma.durability "$mount_point" | grep -q power
  unmount_it
  stop_daemons
}

the_library_goes_by_verbs() {
  # shellcheck source=tests/demo/common.sh
  . /source/tests/demo/common.sh
  rm -rf "$home"
  mkdir -p "$home"/{brick,mds,logs}
  write_configs
  format_pool
  start_daemons
  before=$(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts)
  "$bin/pnfsrdma-bench" "$server:$nfs_port:/" --seconds 0.5 --rounds 1 --size 64 | tee /tmp/library
  grep -q 'data by verbs' /tmp/library
  # More than one thread that posts, polls and sleeps on the fd of a completion channel.
  [ "$("$bin/library_stress" "$server:$nfs_port:/" 5)" -gt 100 ]
  after=$(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts)
  echo "packets over rxe0: $((after - before))"
  [ $((after - before)) -ge 16384 ]
  stop_daemons
}

# The mount registers what the program shares with it.
the_ring_goes_by_verbs() {
  # shellcheck source=tests/demo/common.sh
  . /source/tests/demo/common.sh
  rm -rf "$home"
  mkdir -p "$home"/{brick,mds,logs} "$mount_point"
  write_configs
  format_pool
  start_daemons
  mount_it
  before=$(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts)
  "$bin/pnfsrdma-bench" "$mount_point" --seconds 0.5 --rounds 1 --size 64 | tee /tmp/ring
  grep -q 'data by verbs' /tmp/ring
  [ "$("$bin/library_stress" "$mount_point" 5)" -gt 100 ]
  after=$(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts)
  echo "packets over rxe0: $((after - before))"
  [ $((after - before)) -ge 16384 ]
  getfattr --only-values -n user.pnfsrdma.statistics "$mount_point" | grep -o '"ring_operations":[0-9]*'
  unmount_it
  stop_daemons
}

case_of "the data goes by verbs, and the mount says so" the_data_goes_by_verbs
case_of "so does that of a program with the library" the_library_goes_by_verbs
case_of "and that of one at the mount's ring" the_ring_goes_by_verbs
case_of "the demo's checks pass over verbs" demo
finish
