#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Soft-RoCE over a pair of virtual Ethernet devices (rxe0 at 10.77.0.1) and the NVDIMM as device DAX (/dev/dax0.0).
# With a first argument, rxe0 goes over that network device, at the address of the second.
set -euo pipefail
device=${1:-}
address=${2:-10.77.0.1}
modprobe -a crc32_generic rdma_rxe rdma_ucm nfit nd_pmem device_dax dax_pmem veth 2>/tmp/modprobe.log # it misses keys

if [ -z "$device" ]; then
  device=v0
  ip link add v0 type veth peer name v1
  ip link set v1 up
fi
ip link set "$device" up
ip address add "$address/24" dev "$device"
rdma link add rxe0 type rxe netdev "$device"

if [ -d /sys/bus/nd/devices/region0 ] && [ ! -e /dev/dax0.0 ]; then
  ndctl create-namespace -f -e namespace0.0 -m devdax -M mem >/tmp/ndctl.log 2>&1 || { cat /tmp/ndctl.log >&2; exit 1; }
fi
echo "$(rdma link show rxe0/1); $(ls /dev/dax* 2>/dev/null)"
