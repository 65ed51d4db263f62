#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The demo: a brick, an MDS and a mount on this machine; real work on the mount; where the bytes went.
# usage: [CHECK=1] demo.sh BIN_DIRECTORY
#   CHECK=1: no waiting, cleans up, exits 0 only if every check passed.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${1:?usage: demo.sh BIN_DIRECTORY}" && pwd)
check=${CHECK:-0}
# shellcheck source=tests/demo/common.sh
. "$here/common.sh"

need_root_and_fuse
stop_everything            # of an earlier demo
rm -rf "$home"
mkdir -p "$home"/{brick,mds,logs,local} "$mount_point"
trap 'on_exit $?' EXIT

on_exit() {
  if [ "$1" -ne 0 ]; then
    printf '\nThe demo failed. What the programs said last (%s):\n' "$home/logs" >&2
    tail -n 15 "$home"/logs/*.log >&2 || true
  fi
  if [ "$check" = 1 ] || [ "$1" -ne 0 ]; then stop_everything; fi
  if [ "$check" = 1 ] && [ "$1" -eq 0 ]; then rm -rf "$home"; fi
}

title "1. The pool: persistent memory, here a plain file"
write_configs
format_pool
start_daemons
say "The brick owns the memory, the MDS the names. A real PMEM device would be /dev/dax0.0 in $home/brick.json."
say "Durability class of this pool: $(durability_words)"

title "2. The mount"
mount_it
grep " $mount_point " /proc/mounts | sed 's/^/    /'

title "3. A real tree of files"
mkdir -p "$home/local/tree"
"$here/pick_files.py" "$file_count" >"$home/local/list"
tar -C / -cf - -T "$home/local/list" | tar -C "$home/local/tree" -xf -
files=$(find "$home/local/tree" -type f | wc -l)
[ $((files * 5)) -ge $((file_count * 4)) ] || fail "only $files files found under /usr/share and /usr/include: $file_count are wanted"
timed "copying $files files into the mount" cp -a "$home/local/tree" "$mount_point/tree"
(cd "$home/local/tree" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >"$home/local/tree.sha256"
timed "checking them with sha256sum" checksums
ok "$files files are the same on both sides"

title "4. git"
timed "init, add, commit" git_work
timed "git fsck" git -C "$mount_point/repository" fsck --strict
ok "git finds its repository sound"

title "5. SQLite"
timed "a database of $((transactions * 100)) rows in $transactions transactions" sqlite_fill
sqlite_check || fail "SQLite's integrity check failed"
ok "integrity_check says ok, all rows are there"

title "6. Big files: dd and fio, direct and verified"
dd if=/dev/urandom of="$home/local/big" bs=1M count="$big_mebibytes" status=none
timed "dd of $big_mebibytes MiB (O_DIRECT, fsync)" dd if="$home/local/big" of="$mount_point/big" bs=1M oflag=direct conv=fsync status=none
sha256sum <"$home/local/big" >"$home/local/big.sha256"
timed "reading it back (O_DIRECT)" big_checksum
timed "fio: 4 KiB random writes with fdatasync, verified" fio --name=random --filename="$mount_point/fio" --size="$((big_mebibytes / 4))m" --rw=randwrite \
  --bs=4k --direct=1 --fdatasync=16 --io_size="$((big_mebibytes / 8))m" --verify=crc32c --verify_fatal=1 --verify_state_save=0 --ioengine=psync --output="$home/logs/fio.log"
timed "fio: 1 MiB sequential, verified" fio --name=sequential --filename="$mount_point/fio2" --size="${big_mebibytes}m" --rw=write \
  --bs=1m --direct=1 --end_fsync=1 --verify=crc32c --verify_fatal=1 --verify_state_save=0 --ioengine=psync --output="$home/logs/fio2.log"
ok "every byte read is the byte written"
[ -n "$kernel_options" ] || say "Data goes by: $(getfattr --only-values -n user.pnfsrdma.transport "$mount_point" 2>/dev/null)"
first_statistics=$(statistics || true)

title "7. Unmount, restart both daemons, mount again"
unmount_it
stop_daemons
start_daemons
mount_it
timed "the same checksums again" checksums
timed "the big file again" big_checksum
git -C "$mount_point/repository" fsck --strict >/dev/null 2>&1 || fail "git fsck after the restart"
sqlite_check || fail "SQLite after the restart"
ok "nothing was lost"

title "8. Where the bytes went"
if [ -n "$kernel_options" ]; then
  say "Through the MDS, all of them: the kernel's client does not know our layout."
else
  python3 "$here/table.py" "first mount:$first_statistics" "second mount:$(statistics)" || fail "the data did not go by RDMA"
fi

if [ "$check" = 1 ]; then
  printf '\nEvery check passed.\n'
  exit 0
fi
cat <<TEXT

Everything is still running. Look around:
    ls -l $mount_point
    getfattr -d -m - $mount_point              # transport, durability, statistics
    grep pnfsrdma /proc/mounts
    tail $home/logs/*.log
    kill -USR1 $(cat "$home/mds.pid")                        # the MDS logs its counters
The console: https://127.0.0.1:8443 (set-up token: cat $home/mds/console/setup-token), or as root
    curl --unix-socket $home/console.sock http://localhost/api/v1/layouts
Stop it:
    make demo-stop
TEXT
