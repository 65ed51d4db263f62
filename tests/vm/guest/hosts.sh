# SPDX-License-Identifier: Apache-2.0
# What scenarios of several machines share. Sourced after cases.sh. The server (10.77.0.1) runs brick and MDS on device DAX
# and is linked to each client (10.77.0.2, .3); they speak through files in /out, which all of them see.
# shellcheck shell=bash
server=10.77.0.1
mount_point=/mnt/pmem
meeting=/out/$scenario.meeting # empty at the start: lab.py sees to that
mkdir -p "$meeting"

# A flag is complete when it can be seen.
flag() { echo "${2:-}" >"$meeting/$1.new" && mv "$meeting/$1.new" "$meeting/$1"; }
wait_flag() { wait_for "$2" "$1" test -e "$meeting/$1"; }

network_of_server() {
  modprobe -a virtio_net bridge
  ip link add br0 type bridge
  local link
  for link in /sys/class/net/eth*; do
    ip link set "${link##*/}" master br0 up
  done
  /source/tests/vm/guest/prepare.sh br0 "$server"
}
network_of_client() { # address
  modprobe virtio_net
  /source/tests/vm/guest/prepare.sh eth0 "$1"
  wait_for 120 "the server answers a ping" busybox ping -c 1 -W 1 "$server"
}

start_server() {
  mkdir -p /root/mds
  cat >/root/brick.json <<JSON
{"pool": ${pool:-{\"path\": \"/dev/dax0.0\"\}}, "control": {"unix": "/root/brick.sock"}, "data": {"listen": ["$server:20051"]}}
JSON
  cat >/root/mds.json <<JSON
{"listen": ["$server:2049"], "data_directory": "/root/mds", "bricks": ["unix:/root/brick.sock"],
 "exports": [{"path": "/", "root_squash": false, "clients": ["10.77.0.0/24"]}]}
JSON
  "$bin/pnfsrdma-brickd" --config /root/brick.json --format --force
  "$bin/pnfsrdma-brickd" --config /root/brick.json >"$logs/brick.log" 2>&1 &
  echo $! >/root/brick.pid
  wait_for 60 "the brick's socket" test -S /root/brick.sock
  "$bin/pnfsrdma-mdsd" --config /root/mds.json >"$logs/mds.log" 2>&1 &
  echo $! >/root/mds.pid
  wait_for 60 "the MDS answers" bash -c "exec 3<>/dev/tcp/$server/2049"
}
stop_server() {
  local name
  for name in mds brick; do
    kill "$(</root/$name.pid)"
    wait_for 60 "$name ends" bash -c "! kill -0 $(</root/$name.pid)"
  done
  ! grep -i ' critical \| error ' "$logs"/{brick,mds}.log
}

mount_it() {
  mkdir -p "$mount_point"
  "$bin/pnfsrdma-fuse" ${1:+-o "$1"} "$server:/" "$mount_point"
  grep " $mount_point " /proc/mounts
}
# The data, and not by a fall-back; known once there was some.
goes_by() { # verbs or iwarp
  getfattr --only-values -n user.pnfsrdma.transport "$mount_point" | grep "^$1"
}
unmount_it() { umount "$mount_point"; }

# on_other command: has the machine that serves runs it and takes its exit code; its output comes too.
on_other() {
  local answers=() number
  mapfile -t answers < <(compgen -G "$meeting/answer.*")
  number=$((${#answers[@]} + 1))
  flag "request.$number" "$1"
  wait_flag "answer.$number" 120
  printf '%s' "$(<"$meeting/output.$number")"
  return "$(<"$meeting/answer.$number")"
}
serve_requests() { # until the flag "done" stands
  local number=1 code
  while :; do
    until [ -e "$meeting/request.$number" ]; do
      [ ! -e "$meeting/done" ] || return 0
      pause 0.1
    done
    code=0
    bash -euo pipefail "$meeting/request.$number" >"$meeting/output.$number" 2>&1 || code=$?
    flag "answer.$number" "$code"
    number=$((number + 1))
  done
}
