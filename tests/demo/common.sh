# SPDX-License-Identifier: Apache-2.0
# What demo.sh and stop.sh share. Sourced, not run.
# shellcheck shell=bash
home=${PNFSRDMA_DEMO:-/tmp/pnfsrdma-demo}
mount_point=$home/mount
nfs_port=${PNFSRDMA_DEMO_NFS_PORT:-12049}
data_port=${PNFSRDMA_DEMO_DATA_PORT:-12051}
# What the lab changes (tests/vm): the pool (JSON), where the data goes, how much of it, mount options of ours, or those of
# the Linux kernel's NFS client, which then does the work instead.
pool=${PNFSRDMA_DEMO_POOL:-"{\"path\": \"$home/brick/pool.img\", \"size\": \"4G\"}"}
data_listen=${PNFSRDMA_DEMO_DATA_LISTEN:-127.0.0.1:$data_port}
server=${PNFSRDMA_DEMO_SERVER:-127.0.0.1}
# The port our mount takes: another one with proto=rdma.
mount_port=${PNFSRDMA_DEMO_MOUNT_PORT:-$nfs_port}
file_count=${PNFSRDMA_DEMO_FILES:-2500}
big_mebibytes=${PNFSRDMA_DEMO_MEBIBYTES:-256}
transactions=${PNFSRDMA_DEMO_TRANSACTIONS:-200}
mount_options=${PNFSRDMA_DEMO_MOUNT_OPTIONS:-}
kernel_options=${PNFSRDMA_DEMO_KERNEL_OPTIONS:-}
rdma_listen=${PNFSRDMA_DEMO_RDMA_LISTEN:-} # the MDS speaks RPC-over-RDMA there too

title() { printf '\n\033[1m%s\033[0m\n' "$*"; }
say() { printf '    %s\n' "$*"; }
ok() { printf '    \033[32mok\033[0m  %s\n' "$*"; }
fail() { printf '\n    \033[31mFAILED\033[0m  %s\n' "$*" >&2; exit 1; }
run() { printf '    $ %s\n' "$*"; "$@" || fail "$1 ended with exit code $?"; }

# timed "what" command...: runs it, says how long it took; its output goes to a log.
timed() {
  local what=$1 begin end
  shift
  printf '    … %s ' "$what"
  begin=${EPOCHREALTIME/[.,]/} # microseconds
  if ! "$@" >"$home/logs/step.log" 2>&1; then
    printf '\n'
    tail -n 15 "$home/logs/step.log" >&2
    fail "$what"
  fi
  end=${EPOCHREALTIME/[.,]/}
  printf '(%d.%02d s)\n' $(((end - begin) / 1000000)) $(((end - begin) % 1000000 / 10000))
}

need_root_and_fuse() {
  [ "$(id -u)" -eq 0 ] || fail "the demo mounts a file system: run it as root"
  [ -c /dev/fuse ] || fail "/dev/fuse is missing: modprobe fuse, or run on a host (not in a container without --device /dev/fuse)"
}

write_configs() {
  local rdma_setting=""
  [ -z "$rdma_listen" ] || rdma_setting=" \"rdma_listen\": [\"$rdma_listen\"],"
  cat >"$home/brick.json" <<JSON
{
  "pool": $pool,
  "control": {"unix": "$home/brick/control.sock"},
  "data": {"listen": ["$data_listen"]}
}
JSON
  cat >"$home/mds.json" <<JSON
{
  "listen": ["$server:$nfs_port"],$rdma_setting
  "data_directory": "$home/mds",
  "bricks": ["unix:$home/brick/control.sock"],
  "console": {"socket": "$home/console.sock", "web_directory": "${bin%/bin}/web"},
  "exports": [{"path": "/", "root_squash": false, "clients": ["127.0.0.0/8", "$server"]}]
}
JSON
}

wait_for_answer() {
  local name=$1 address=$2 tries
  for ((tries = 0; tries < 600; tries++)); do
    (exec 3<>"/dev/tcp/${address%:*}/${address##*:}") 2>/dev/null && return 0
    kill -0 "$(<"$home/$name.pid")" 2>/dev/null || fail "$name ended at start; see $home/logs/$name.log"
    sleep 0.1
  done
  fail "$name does not answer on $address after 60 s; see $home/logs/$name.log"
}

start_one() {
  local name=$1 address=$2
  shift 2
  printf '    $ %s &\n' "$*"
  setsid "$@" >>"$home/logs/$name.log" 2>&1 </dev/null &
  echo $! >"$home/$name.pid"
  wait_for_answer "$name" "$address"
}

start_daemons() {
  start_one brick "$data_listen" "$bin/pnfsrdma-brickd" --config "$home/brick.json"
  start_one mds "$server:$nfs_port" "$bin/pnfsrdma-mdsd" --config "$home/mds.json"
}

mount_it() {
  if [ -n "$kernel_options" ]; then
    run mount -t nfs4 -o "$kernel_options" "$server:/" "$mount_point"
  else
    run "$bin/pnfsrdma-fuse" ${mount_options:+-o "$mount_options"} "$server:$mount_port:/" "$mount_point"
  fi
}

unmount_it() {
  umount "$mount_point" || fail "umount $mount_point"
  local tries
  for ((tries = 0; tries < 100; tries++)); do
    pgrep -f "pnfsrdma-fuse .*$mount_point" >/dev/null || return 0
    sleep 0.1
  done
  fail "pnfsrdma-fuse is still there 10 s after the unmount"
}

# Ends the process of a pid file by its pid and waits for it; SIGKILL after 20 s.
stop_one() {
  local file=$home/$1.pid pid tries
  [ -f "$file" ] || return 0
  pid=$(<"$file")
  if grep -qa "pnfsrdma" "/proc/$pid/cmdline" 2>/dev/null; then
    kill "$pid" 2>/dev/null || true
    for ((tries = 0; tries < 200; tries++)); do
      [ -d "/proc/$pid" ] && [ "$(cut -d' ' -f3 "/proc/$pid/stat" 2>/dev/null)" != Z ] || break
      sleep 0.1
    done
    kill -9 "$pid" 2>/dev/null || true
  fi
  rm -f "$file"
}
stop_daemons() { stop_one mds; stop_one brick; }
stop_everything() {
  if grep -q " $mount_point " /proc/mounts; then umount "$mount_point" || umount -l "$mount_point"; fi
  stop_daemons
}

statistics() { getfattr --only-values -n user.pnfsrdma.statistics "$mount_point" 2>/dev/null; }
durability_words() {
  "$bin/pnfsrdma-brickd" --config "$home/brick.json" --print-config >/dev/null
  grep -o 'durability=[a-z]*' "$home/logs/brick.log" | tail -n 1 | sed 's/durability=//'
}
checksums() { (cd "$mount_point/tree" && sha256sum --quiet --strict -c "$home/local/tree.sha256"); }
big_checksum() { dd if="$mount_point/big" bs=1M iflag=direct status=none | sha256sum | cmp - "$home/local/big.sha256"; }
git_work() {
  local repository=$mount_point/repository
  mkdir -p "$repository"
  cp -r "$home/local/tree/." "$repository/"
  git -C "$repository" init -q
  git -C "$repository" -c core.autocrlf=false add -A
  git -C "$repository" -c user.name=demo -c user.email=demo@localhost commit -qm "the whole tree"
  [ -z "$(git -C "$repository" status --porcelain)" ]
}
sqlite_fill() {
  {
    echo "CREATE TABLE item(id INTEGER PRIMARY KEY, body TEXT);"
    for transaction in $(seq "$transactions"); do
      echo "BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<100)" \
        "INSERT INTO item(body) SELECT 'row '||i||' of transaction $transaction' FROM n; COMMIT;"
    done
  } | sqlite3 "$mount_point/database.sqlite"
}
sqlite_check() {
  [ "$(sqlite3 "$mount_point/database.sqlite" 'PRAGMA integrity_check; SELECT count(*) FROM item;')" = $'ok\n'"$((transactions * 100))" ]
}
format_pool() { run "$bin/pnfsrdma-brickd" --config "$home/brick.json" --format ${PNFSRDMA_DEMO_POOL:+--force}; }
