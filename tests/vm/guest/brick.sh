# SPDX-License-Identifier: Apache-2.0
# A brick without MDS, for what speaks to it itself. Sourced after cases.sh.
# shellcheck shell=bash
brick_home=/root/brick
brick_socket=$brick_home/control.sock

start_brick() { # the pool, JSON
  mkdir -p "$brick_home"
  cat >"$brick_home/brick.json" <<JSON
{"pool": $1, "control": {"unix": "$brick_socket"}, "data": {"listen": ["10.77.0.1:12051"]}, "log_level": "warning"}
JSON
  "$bin/pnfsrdma-brickd" --config "$brick_home/brick.json" --format --force
  "$bin/pnfsrdma-brickd" --config "$brick_home/brick.json" >"$brick_home/log" 2>&1 &
  echo $! >"$brick_home/pid"
  wait_for 60 "the brick's socket" test -S "$brick_socket"
}
stop_brick() {
  local pid
  pid=$(cat "$brick_home/pid")
  kill "$pid"
  wait_for 60 "the brick ends" bash -c "! kill -0 $pid"
  cp "$brick_home/log" "$logs/brick.log"
  rm -f "$brick_socket"
}
