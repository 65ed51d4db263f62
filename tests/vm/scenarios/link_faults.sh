#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hosts: server client
# A link that loses packets, one that is down for 20 seconds, and an RDMA device that goes away, under a writer that
# syncs; and that device come back, under the next mount: what was synced is there.
. /source/tests/vm/guest/cases.sh
. /source/tests/vm/guest/hosts.sh

if [ "$1" = server ]; then
  case_of "the server starts" eval "network_of_server; start_server"
  flag server.ready
  case_of "the client comes to its end" wait_flag client.done 500
  case_of "the server stops" eval 'kill $(cat /root/mds.pid) $(cat /root/brick.pid)'
  finish
fi

# The writer runs on through the fault and for some seconds after it; it must have gone on by then.
survives() { # name command-that-takes-its-time...
  local name=$1 pid before
  shift
  /source/tests/vm/guest/synced_writer.py write "$mount_point/$name" "/tmp/$name.acknowledged" &
  pid=$!
  trap "kill $pid 2>/dev/null || true" EXIT # the name is gone by then
  wait_for 30 "the writer writes" test -s "/tmp/$name.acknowledged"
  sleep 2
  "$@"
  before=$(wc -l <"/tmp/$name.acknowledged")
  echo "acknowledged when the fault was over: $before"
  wait_for 60 "the writer goes on" bash -c "[ \$(wc -l </tmp/$name.acknowledged) -gt $((before + 10)) ]"
  kill "$pid"
  wait "$pid"
  getfattr --only-values -n user.pnfsrdma.statistics "$mount_point"
}
loss() {
  modprobe sch_netem
  tc qdisc add dev eth0 root netem loss 1%
  sleep 20
  tc qdisc del dev eth0 root
}
outage() {
  ip link set eth0 down
  sleep 20
  ip link set eth0 up
}
removal() {
  rdma link delete rxe0 & # ends with the mount: Soft-RoCE waits for who has the device open
  wait_for 60 "the data goes by iwarp" goes_by iwarp
  sleep 5
}
everything_is_there() {
  umount "$mount_point"
  wait_for 60 "the device comes back" rdma link add rxe0 type rxe netdev eth0
  mount_it
  local name
  for name in loss outage removal; do
    /source/tests/vm/guest/synced_writer.py check "$mount_point/$name" "/tmp/$name.acknowledged"
  done
  goes_by verbs
}

case_of "the network between server and client" network_of_client 10.77.0.2
case_of "the server is ready" wait_flag server.ready 120
case_of "the client mounts" mount_it
case_of "a writer survives the loss of 1 of 100 packets" survives loss loss
case_of "a writer survives 20 s without a link" survives outage outage
case_of "a writer survives the removal of its RDMA device" survives removal removal
case_of "after a new mount, on the device that has come back, all that was synced is there" everything_is_there
case_of "the client unmounts" unmount_it
flag client.done
finish
