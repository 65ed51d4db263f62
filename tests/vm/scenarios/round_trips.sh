#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hosts: server client
# What a write and an fdatasync cost on the wire, packet by packet, and in round trips of a slow link: one each, and one together
# where each write is followed by its fdatasync. By native flush and by the commit message.
. /source/tests/vm/guest/cases.sh
. /source/tests/vm/guest/hosts.sh

if [ "$1" = server ]; then
  case_of "the server starts" eval "network_of_server; start_server"
  flag server.native
  serve_requests &
  case_of "the client has measured native flush" wait_flag native.done 300
  case_of "the server stops" stop_server
  case_of "the server starts on volatile memory, which has no native flush" eval \
    "pool='{\"path\": \"/dev/shm/pool\", \"size\": \"256M\"}'; rm -rf /root/mds /root/brick.sock; start_server"
  flag server.message
  case_of "the client has measured the commit message" wait_flag message.done 300
  case_of "the server stops again" stop_server
  flag done
  finish
fi
measured() { # native or message
  /source/tests/vm/guest/round_trips.py "$mount_point" eth0 "$1"
}
measured_slowly() {
  modprobe sch_netem
  tc qdisc add dev eth0 root netem delay 20ms limit 10000
  on_other "modprobe sch_netem; tc qdisc add dev eth0 root netem delay 20ms limit 10000"
  trap 'tc qdisc del dev eth0 root; on_other "tc qdisc del dev eth0 root"' EXIT
  /source/tests/vm/guest/round_trips.py "$mount_point" eth0 "$1" --round-trip-ms 40
}
case_of "the network between server and client" network_of_client 10.77.0.2
for method in native message; do
  case_of "the server is ready ($method)" wait_flag server.$method 300
  case_of "the client mounts ($method)" mount_it
  case_of "fdatasync is one round trip by its packets ($method)" measured $method
  case_of "fdatasync is one round trip by the clock, on a slow link ($method)" measured_slowly $method
  case_of "the client unmounts ($method)" unmount_it
  flag $method.done
done
sed 's/^/    | /' "$logs"/fdatasync_*.log
finish
