#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hosts: server client
# A server and a client, each a machine of its own with its own kernel: the file checks across a network.
. /source/tests/vm/guest/cases.sh
. /source/tests/vm/guest/hosts.sh

the_data_went_by_rdma() {
  local statistics
  statistics=$(getfattr --only-values -n user.pnfsrdma.statistics "$mount_point")
  getfattr -d -m - "$mount_point"
  python3 /source/tests/demo/table.py "client:$statistics"
  goes_by verbs
}

if [ "$1" = server ]; then
  case_of "the server starts" eval "network_of_server; start_server"
  flag server.ready
  case_of "the client comes to its end" wait_flag client.done 600
  case_of "the server stops without an error" stop_server
  finish
fi
case_of "the network between server and client" network_of_client 10.77.0.2
case_of "the server is ready" wait_flag server.ready 120
case_of "the client mounts" mount_it require_durability=persistent
if passed; then
  case_of "the file checks pass" /source/tests/vm/guest/file_checks.sh "$mount_point"
  case_of "the data went by RDMA" the_data_went_by_rdma
  case_of "the client unmounts" unmount_it
fi
flag client.done
finish
