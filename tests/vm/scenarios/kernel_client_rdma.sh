#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Linux kernel's NFS client on our MDS over RPC-over-RDMA (real verbs): the demo's checks.
. /source/tests/vm/guest/cases.sh
export PNFSRDMA_DEMO=/tmp/kernel-rdma PNFSRDMA_DEMO_POOL='{"path": "/dev/dax0.0"}' PNFSRDMA_DEMO_SERVER=10.77.0.1
export PNFSRDMA_DEMO_RDMA_LISTEN=10.77.0.1:20049

if ! "$bin/pnfsrdma-mdsd" --help >/dev/null 2>&1 || ! ldd "$bin/pnfsrdma-mdsd" | grep -q libibverbs; then
  skip "the kernel's client over RDMA" "this MDS is built without verbs"
  finish
fi
modprobe -a nfsv4 rpcrdma

it_mounts() {
  # shellcheck source=tests/demo/common.sh
  . /source/tests/demo/common.sh
  rm -rf "$home"
  mkdir -p "$home"/{brick,mds,logs} "$mount_point"
  write_configs
  format_pool
  start_daemons
  cat "$home"/logs/*.log
  timeout 120 mount -t nfs4 -o "$kernel_options" "$server:/" "$mount_point"
  grep " $mount_point " /proc/mounts | grep proto=rdma
  head -c 3000000 /dev/urandom >/tmp/random # by read and write chunks
  cp /tmp/random "$mount_point/file"
  echo 3 >/proc/sys/vm/drop_caches
  cmp /tmp/random "$mount_point/file"
  grep xprt: /proc/self/mountstats
  umount "$mount_point"
  stop_daemons
}

for minor in 2 1; do
  export PNFSRDMA_DEMO_KERNEL_OPTIONS="vers=4.$minor,proto=rdma,port=20049"
  case_of "it mounts with vers=4.$minor and reads back what it wrote" it_mounts || continue
  [ $minor = 1 ] || case_of "the demo's checks pass with vers=4.$minor" demo
done
finish
