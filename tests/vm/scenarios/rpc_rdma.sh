#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# RPC-over-RDMA for the control path, over rxe: the demo's checks by our mount and by the Linux kernel's client, and files
# that both share.
. /source/tests/vm/guest/cases.sh
export PNFSRDMA_DEMO=/tmp/rpc-rdma PNFSRDMA_DEMO_POOL='{"path": "/dev/dax0.0"}' PNFSRDMA_DEMO_SERVER=10.77.0.1
export PNFSRDMA_DEMO_DATA_LISTEN=10.77.0.1:12051 PNFSRDMA_DEMO_RDMA_LISTEN=10.77.0.1:20049
kernel_over_rdma=vers=4.2,proto=rdma,port=20049
modprobe -a nfsv4 rpcrdma

demo_by_our_mount() {
  PNFSRDMA_DEMO_MOUNT_OPTIONS=proto=rdma PNFSRDMA_DEMO_MOUNT_PORT=20049 demo
}
demo_by_the_kernel() {
  PNFSRDMA_DEMO_KERNEL_OPTIONS=$kernel_over_rdma demo
}

# No TCP connection to the MDS's port from either mount, and each reads what the other has written.
both_mounts_share_files() {
  export PNFSRDMA_DEMO_MOUNT_OPTIONS=proto=rdma PNFSRDMA_DEMO_MOUNT_PORT=20049
  # shellcheck source=tests/demo/common.sh
  . /source/tests/demo/common.sh
  rm -rf "$home"
  mkdir -p "$home"/{brick,mds,logs,kernel} "$mount_point"
  write_configs
  format_pool
  start_daemons
  mount_it
  mount -t nfs4 -o "$kernel_over_rdma" "$server:/" "$home/kernel"
  dd if=/dev/urandom of=/tmp/random bs=1M count=8 status=none
  cp /tmp/random "$home/kernel/from-kernel"
  cmp "$mount_point/from-kernel" /tmp/random
  dd if=/tmp/random of="$mount_point/from-ours" bs=1M oflag=direct conv=fsync status=none
  cmp "$home/kernel/from-ours" /tmp/random
  # A truncate by the kernel's client recalls our layout: the callback goes by RDMA too.
  exec 9<>"$mount_point/from-ours"
  dd if=/tmp/random of="$mount_point/from-ours" bs=1M count=1 oflag=direct conv=notrunc,fsync status=none
  truncate -s 1M "$home/kernel/from-ours"
  # Close-to-open: whoever opens the file sees its size; a stat alone may show the old one until acregmin has passed.
  [ "$(wc -c <"$mount_point/from-ours")" = 1048576 ]
  exec 9>&-
  grep -q 'proto=rdma' /proc/self/mountinfo
  ss -tn state established >/tmp/connections
  if grep ":$nfs_port " /tmp/connections; then
    echo "calls go by TCP"
    return 1
  fi
  umount "$home/kernel"
  unmount_it
  stop_daemons
}

case_of "the demo's checks pass by our mount with proto=rdma" demo_by_our_mount
case_of "the demo's checks pass by the kernel's client with $kernel_over_rdma" demo_by_the_kernel
PNFSRDMA_DEMO_KERNEL_OPTIONS=vers=4.1,proto=rdma,port=20049 \
  case_of "the demo's checks pass by the kernel's client with vers=4.1,proto=rdma" demo
case_of "our mount and the kernel's share files, all calls and recalls by RDMA" both_mounts_share_files
finish
