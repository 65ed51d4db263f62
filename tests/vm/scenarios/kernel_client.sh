#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Linux kernel's NFS client on our MDS, over TCP: the demo's checks, and files shared with our own mount.
. /source/tests/vm/guest/cases.sh
export PNFSRDMA_DEMO=/tmp/kernel-client PNFSRDMA_DEMO_POOL='{"path": "/dev/dax0.0"}'
port=12049
here=$PNFSRDMA_DEMO
modprobe nfsv4

start() {
  # shellcheck source=tests/demo/common.sh
  . /source/tests/demo/common.sh
  rm -rf "$home"
  mkdir -p "$home"/{brick,mds,logs,kernel} "$mount_point"
  write_configs
  format_pool
  start_daemons
  mount_it
  mount -t nfs4 -o "vers=4.2,port=$port" 127.0.0.1:/ "$home/kernel"
}
stop() {
  # shellcheck source=tests/demo/common.sh
  . /source/tests/demo/common.sh
  umount "$home/kernel"
  unmount_it
  stop_daemons
}

ours_reads_what_the_kernel_wrote() {
  dd if=/dev/urandom of=/tmp/random bs=1M count=8 status=none
  cp /tmp/random "$here/kernel/from-kernel" # close: COMMIT, so that the other client may look
  before=$(getfattr --only-values -n user.pnfsrdma.statistics "$here/mount")
  dd if="$here/mount/from-kernel" iflag=direct bs=1M status=none | cmp - /tmp/random
  after=$(getfattr --only-values -n user.pnfsrdma.statistics "$here/mount")
  python3 - "$before" "$after" <<'PYTHON'
import json, sys
before, after = map(json.loads, sys.argv[1:])
read = after["rdma_read_bytes"] - before["rdma_read_bytes"]
print("read by RDMA READ under a layout:", read)
assert read >= 8 << 20, "the bytes did not come by RDMA"
PYTHON
}

the_kernel_reads_what_ours_wrote() {
  dd if=/tmp/random of="$here/mount/from-ours" bs=1M oflag=direct conv=fsync status=none
  cmp "$here/kernel/from-ours" /tmp/random
}

# Both have it open; each sees what the other wrote after close and open (close-to-open).
both_write_one_file() {
  local i
  for i in 1 2 3 4 5; do
    printf 'kernel %d\n' "$i" | dd of="$here/kernel/both" bs=4096 seek="$i" conv=notrunc status=none
    printf 'ours %d\n' "$i" | dd of="$here/mount/both" bs=4096 seek=$((i + 10)) conv=notrunc status=none
    [ "$(dd if="$here/mount/both" bs=4096 skip="$i" count=1 status=none | tr -d '\0')" = "kernel $i" ]
    [ "$(dd if="$here/kernel/both" bs=4096 skip=$((i + 10)) count=1 status=none | tr -d '\0')" = "ours $i" ]
  done
  cmp "$here/kernel/both" "$here/mount/both"
}

a_truncate_by_the_kernel_recalls_our_layout() {
  exec 5<>"$here/mount/from-ours"
  dd bs=4096 count=1 if=/dev/zero conv=notrunc status=none >&5 # a read-write layout is held from here on
  begin=$(date +%s%N)
  truncate -s 1000 "$here/kernel/from-ours"
  echo "truncated after $((($(date +%s%N) - begin) / 1000000)) ms"
  exec 5<&-
  [ "$(stat -c %s "$here/kernel/from-ours")" = 1000 ]
  [ "$(wc -c <"$here/mount/from-ours")" = 1000 ]
  truncate -s 10000 "$here/mount/from-ours"
  [ "$(tail -c 9000 "$here/kernel/from-ours" | tr -d '\0' | wc -c)" = 0 ]
}

# Calls of that kind that the kernel's mount has sent so far.
sent() {
  awk -v point="$here/kernel" -v kinds=" $* " '/^device/ { ours = index($0, " mounted on " point " ") }
    ours && index(kinds, " " substr($1, 1, length($1) - 1) " ") { sum += $2 } END { print sum + 0 }' /proc/self/mountstats
}
opens_sent() { sent OPEN OPEN_NOATTR; }

# Holes at both ends, between data, and smaller than a READ.
it_reads_holes() {
  local file=$here/mount/holes reads plus at
  truncate -s 6M "$file"
  for at in 1 3 4 255 256 700; do
    head -c 16384 /dev/urandom | dd of="$file" bs=16384 seek="$at" conv=notrunc,fsync status=none
  done
  reads=$(sent READ READ_PLUS)
  plus=$(sent READ_PLUS)
  cmp "$here/kernel/holes" "$file"
  reads=$(($(sent READ READ_PLUS) - reads)) plus=$(($(sent READ_PLUS) - plus))
  echo "READ_PLUS: $plus of $reads calls"
  [ "$reads" -gt 0 ]
  if grep -q "^CONFIG_NFS_V4_2_READ_PLUS=y" "/boot/config-$(uname -r)"; then
    [ "$plus" = "$reads" ]
  else
    echo "this kernel is built without CONFIG_NFS_V4_2_READ_PLUS"
  fi
}

# Opens of a file that the kernel's client holds a delegation of cost no call, until our mount writes it.
a_delegation_spares_opens_until_ours_writes() {
  local i before begin took
  echo one >"$here/kernel/delegated"
  cat "$here/kernel/delegated"
  before=$(opens_sent)
  for i in 1 2 3 4 5; do cat "$here/kernel/delegated" >/dev/null; done
  echo "OPENs: $before, five opens later $(opens_sent)"
  [ "$(opens_sent)" = "$before" ]
  begin=$(date +%s%N)
  echo two >"$here/mount/delegated"
  took=$((($(date +%s%N) - begin) / 1000000))
  echo "written after $took ms"
  [ "$took" -lt 5000 ]
  [ "$(cat "$here/kernel/delegated")" = two ]
}

# FICLONE, which FUSE has not; then both are written, the one by our mount.
it_clones() {
  head -c 5000000 /dev/urandom >"$here/mount/original"
  cp --reflink=always "$here/kernel/original" "$here/kernel/reflink"
  echo "CLONE: $(sent CLONE)"
  [ "$(sent CLONE)" -gt 0 ]
  cmp "$here/mount/original" "$here/mount/reflink"
  cp "$here/kernel/original" /tmp/original
  printf ours | dd of="$here/mount/reflink" bs=1 seek=3000000 conv=notrunc,fsync status=none
  printf kernel | dd of="$here/kernel/original" bs=1 seek=1000 conv=notrunc,fsync status=none
  cmp "$here/kernel/original" <(printf kernel | dd of=/tmp/original bs=1 seek=1000 conv=notrunc,fsync status=none && cat /tmp/original)
  [ "$(dd if="$here/kernel/reflink" bs=1 skip=3000000 count=4 status=none)" = ours ]
  [ "$(cmp -l "$here/mount/original" "$here/mount/reflink" | wc -l)" -le 10 ]
}

# copy_file_range(2) of more than the server copies for one synchronous COPY, from an offset that no clone can have: the
# COPY is answered at once, and CB_OFFLOAD tells its end.
it_copies_long_files_asynchronously() {
  local at before
  truncate -s 90M "$here/mount/long"
  for at in 0 40 84; do head -c 1000000 /dev/urandom | dd of="$here/mount/long" bs=1M seek="$at" conv=notrunc,fsync status=none; done
  before=$(sent COPY)
  python3 - "$here/kernel/long" "$here/kernel/copied" <<'PYTHON'
import os, sys
source, target = os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[2], os.O_RDWR | os.O_CREAT)
count = os.copy_file_range(source, target, 85 << 20, 100, 0)
print("copied by one call:", count)
assert count == 85 << 20
PYTHON
  echo "COPY: $before, then $(sent COPY)"
  [ "$(sent COPY)" = $((before + 1)) ]
  cmp -n $((85 << 20)) -i 100:0 "$here/mount/long" "$here/mount/copied"
}

# The kernel's client has no POSIX ACLs of its own: the server decides by those that our mount has set, and inherits them
# (linux/posix_acl_xattr.h: 7, 5 and 0 for owner, group and others; 1234 may read, by a mask of 4).
acls_are_in_force() {
  local others=ffffffff
  mkdir "$here/mount/acls"
  setfattr -n system.posix_acl_default -v "0x0200000001000700${others}04000500${others}20000000${others}" "$here/mount/acls"
  (
    umask 077
    touch "$here/kernel/acls/file" "$here/kernel/masked"
    mkdir "$here/kernel/acls/directory"
  )
  stat -c '%a %n' "$here/kernel/acls/file" "$here/kernel/acls/directory" "$here/kernel/masked"
  [ "$(stat -c %a "$here/kernel/acls/file")" = 640 ]
  [ "$(stat -c %a "$here/kernel/acls/directory")" = 750 ]
  [ "$(stat -c %a "$here/kernel/masked")" = 600 ]
  chmod 755 "$here/mount/acls" "$here/kernel" # the way to it
  echo secret >"$here/kernel/acls/named"
  setfattr -n system.posix_acl_access \
    -v "0x0200000001000600${others}02000400d204000004000000${others}10000400${others}20000000${others}" "$here/mount/acls/named"
  [ "$(setpriv --reuid 1234 --regid 1234 --clear-groups cat "$here/kernel/acls/named")" = secret ]
  # shellcheck disable=SC2016 # the inner shell's
  setpriv --reuid 1234 --regid 1234 --clear-groups bash -c '! echo no >>"$1"' - "$here/kernel/acls/named"
  setpriv --reuid 1235 --regid 1235 --clear-groups bash -c '! cat "$1"' - "$here/kernel/acls/named"
}

# Two processes, by fcntl: the second waits for the first, and SQLite works as it comes.
it_locks() {
  flock "$here/kernel/.lock" sleep 3 &
  holder=$!
  wait_for 20 "the lock is held" bash -c "! flock -n '$here/kernel/.lock' true"
  flock -w 30 "$here/kernel/.lock" true
  wait "$holder"
  [ "$(sqlite3 "$here/kernel/locked.sqlite" 'create table t(a); insert into t values(42); select a from t;')" = 42 ]
}

PNFSRDMA_DEMO_KERNEL_OPTIONS=vers=4.2,port=$port case_of "the demo's checks pass with vers=4.2" demo
PNFSRDMA_DEMO_KERNEL_OPTIONS=vers=4.1,port=$port case_of "the demo's checks pass with vers=4.1" demo
case_of "our mount and the kernel's side by side" start
if passed; then
  case_of "our mount reads under a layout what the kernel's client wrote" ours_reads_what_the_kernel_wrote
  case_of "the kernel's client reads what our mount wrote by RDMA" the_kernel_reads_what_ours_wrote
  case_of "the kernel's client reads the holes of a file" it_reads_holes
  case_of "both write one file" both_write_one_file
  case_of "the kernel's client clones a file (FICLONE), and either can be written" it_clones
  case_of "the kernel's client copies a long file by one asynchronous COPY" it_copies_long_files_asynchronously
  case_of "a truncate by the kernel's client recalls our layout" a_truncate_by_the_kernel_recalls_our_layout
  case_of "a delegation spares the kernel's client OPENs until our mount writes" a_delegation_spares_opens_until_ours_writes
  case_of "ACLs that our mount has set are in force for the kernel's client" acls_are_in_force
  case_of "the kernel's client locks byte ranges" it_locks
  case_of "the kernel's client and our mount exclude each other by locks" /source/tests/vm/guest/exclusion.py \
    "$here/mount/exclusion" "$here/kernel/exclusion"
  case_of "both unmount" stop
fi
finish
