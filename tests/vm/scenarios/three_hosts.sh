#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hosts: server first second
# Two clients on machines of their own share files: close-to-open, shared memory under two layouts, recall, death of one.
. /source/tests/vm/guest/cases.sh
. /source/tests/vm/guest/hosts.sh
m=$mount_point

what_one_closes_the_other_opens() {
  local i
  for i in 1 2 3 4 5; do
    head -c $((200000 + i)) /dev/urandom >"$m/closed"
    [ "$(sha256sum <"$m/closed")" = "$(on_other "sha256sum <$m/closed")" ]
    on_other "head -c $((100000 + i)) /dev/urandom >$m/closed"
    [ "$(sha256sum <"$m/closed")" = "$(on_other "sha256sum <$m/closed")" ]
  done
}
in_place_data_is_shared() {
  dd if=/dev/zero of="$m/shared" bs=1M count=4 conv=fsync status=none
  on_other "exec 7<>$m/shared; sleep 300 & echo \$! >/tmp/holder" # holds the file open
  local i
  for i in 1 2 3 4 5 6 7 8; do
    head -c 4096 /dev/urandom >/tmp/block
    dd if=/tmp/block of="$m/shared" bs=4096 seek="$i" count=1 oflag=direct conv=notrunc status=none
    [ "$(sha256sum </tmp/block)" = "$(on_other "dd if=$m/shared bs=4096 skip=$i count=1 iflag=direct status=none | sha256sum")" ]
  done
  on_other 'kill $(cat /tmp/holder)'
}
the_data_of_both_goes_by_verbs() {
  goes_by verbs
  on_other "getfattr --only-values -n user.pnfsrdma.transport $m | grep ^verbs"
}
a_truncate_recalls_the_other_layout() {
  dd if=/dev/urandom of="$m/cut" bs=1M count=8 conv=fsync status=none
  exec 6<>"$m/cut"
  dd if=/dev/zero bs=4096 count=1 conv=notrunc status=none >&6
  on_other "truncate -s 1M $m/cut"
  # Close-to-open: an open asks for the size; a stat alone may show the old one until acregmin has passed.
  [ "$(wc -c <"$m/cut")" = 1048576 ]
  exec 6<&-
  on_other "truncate -s 2M $m/cut"
  [ "$(tail -c 1048576 "$m/cut" | tr -d '\0' | wc -c)" = 0 ]
}
a_removed_file_stays_readable_to_who_has_it_open() {
  head -c 3000000 /dev/urandom >"$m/removed"
  sum=$(sha256sum <"$m/removed")
  exec 6<"$m/removed"
  on_other "rm $m/removed"
  [ "$(sha256sum <&6)" = "$sum" ]
  exec 6<&-
}
names_are_seen() {
  mkdir "$m/names"
  touch "$m"/names/{1..30}
  [ "$(on_other "ls $m/names | wc -l")" = 30 ]
  on_other "mv $m/names/1 $m/names/renamed"
  sleep 4 # an absent name is believed for acregmin, 3 s
  [ -e "$m/names/renamed" ]
}
a_killed_clients_uncommitted_bytes_are_not_readable() {
  on_other "head -c 4M /dev/zero | tr '\0' v >$m/victim; sync -d $m/victim; pkill -KILL -x pnfsrdma-fuse; umount -l $m"
  begin=$(date +%s)
  truncate -s 5M "$m/victim"
  echo "truncated after $(($(date +%s) - begin)) s"
  [ "$(head -c 4M "$m/victim" | tr -d v | wc -c)" = 0 ]
  [ "$(tail -c 1M "$m/victim" | tr -d '\0' | wc -c)" = 0 ]
}

case "$1" in
  server)
    case_of "the server starts" eval "network_of_server; start_server"
    flag server.ready
    case_of "the clients come to their end" wait_flag done 800
    case_of "the server stops without an error" stop_server
    finish ;;
  first) address=10.77.0.2 ;;
  second) address=10.77.0.3 ;;
esac
case_of "$1: the network" network_of_client "$address"
case_of "$1: the server is ready" wait_flag server.ready 120
case_of "$1: the mount" mount_it
if [ "$1" = second ]; then
  flag second.ready
  serve_requests
  finish
fi
case_of "the other client is ready" wait_flag second.ready 200
for check in what_one_closes_the_other_opens in_place_data_is_shared the_data_of_both_goes_by_verbs a_truncate_recalls_the_other_layout \
  a_removed_file_stays_readable_to_who_has_it_open names_are_seen a_killed_clients_uncommitted_bytes_are_not_readable; do
  case_of "${check//_/ }" $check
done
case_of "the first client unmounts" unmount_it
flag done
finish
