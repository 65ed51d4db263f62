#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fencing with a stop-watch, over real verbs on device DAX: clients that behave in every bad way lose a grant, or are
# expelled, while two others work on. The table is printed; every figure in it that must be 0 is checked.
. /source/tests/vm/guest/cases.sh
. /source/tests/vm/guest/brick.sh
rounds=${PNFSRDMA_LAB_ROUNDS:-5}

measure() {
  "$bin/bench-brick" fencing --control "$brick_socket" --rounds "$rounds"
}
it_lives_on() {
  kill -0 "$(cat "$brick_home/pid")"
  "$bin/bench-brick" durable --control "$brick_socket" --operations 50
  ! dmesg | grep -E 'BUG:|Oops|general protection|WARNING: CPU'
}

case_of "a brick on device DAX starts" start_brick '{"path": "/dev/dax0.0"}'
if passed; then
  case_of "no byte moves after a revocation, whatever the client does, and nobody else notices" measure
  sed 's/^/    | /' "$logs/no_byte_moves_after_a_revocation__whatever_the_client_does__and_nobody_else_notices.log"
  case_of "brick and kernel have come through it" it_lives_on
  case_of "the brick stops" stop_brick
fi

# With an MDS: it decides when a recall's time, one lease, is over.
export PNFSRDMA_DEMO=/tmp/fencing PNFSRDMA_DEMO_POOL='{"path": "/dev/dax0.0"}' PNFSRDMA_DEMO_SERVER=10.77.0.1
export PNFSRDMA_DEMO_DATA_LISTEN=10.77.0.1:12051
lease=3
an_ignored_recall_ends_in_revocation() {
  # shellcheck source=tests/demo/common.sh
  . /source/tests/demo/common.sh
  rm -rf "$home"
  mkdir -p "$home"/{brick,mds,logs} "$mount_point"
  write_configs
  sed -i "s/\"exports\"/\"lease_seconds\": $lease, \"exports\"/" "$home/mds.json"
  format_pool
  start_daemons
  mount_it
  /source/tests/vm/guest/ignored_recall.py "$bin" "$mount_point" "$server:$nfs_port" "$home/logs/mds.log" "$lease"
  unmount_it
  stop_daemons
}
case_of "who ignores a recall is refused after one lease, and nothing changes after the truncate that caused it" \
  an_ignored_recall_ends_in_revocation
grep -h 'decision to' "$logs"/who_ignores*.log | sed 's/^/    | /'
finish
