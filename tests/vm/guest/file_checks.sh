#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The demo's work on a file system that is mounted already: real files by checksum, git, SQLite, dd and fio with verification.
# usage: file_checks.sh MOUNT [FILES] [MEBIBYTES]
set -euo pipefail
mounted=$1
export PNFSRDMA_DEMO=/tmp/file-checks PNFSRDMA_DEMO_FILES=${2:-20} PNFSRDMA_DEMO_TRANSACTIONS=10 PNFSRDMA_DEMO_MEBIBYTES=${3:-8}
# shellcheck source=tests/demo/common.sh
. /source/tests/demo/common.sh
mount_point=$mounted
rm -rf "$home"
mkdir -p "$home"/{logs,local/tree}
/source/tests/demo/pick_files.py "$file_count" >"$home/local/list"
tar -C / -cf - -T "$home/local/list" | tar -C "$home/local/tree" -xf -
timed "copying the tree" cp -a "$home/local/tree" "$mount_point/tree"
(cd "$home/local/tree" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >"$home/local/tree.sha256"
timed "checksums" checksums
timed "git" git_work
timed "git fsck" git -C "$mount_point/repository" fsck --strict
timed "SQLite" sqlite_fill
sqlite_check
dd if=/dev/urandom of="$home/local/big" bs=1M count="$big_mebibytes" status=none
timed "dd, O_DIRECT, fsync" dd if="$home/local/big" of="$mount_point/big" bs=1M oflag=direct conv=fsync status=none
sha256sum <"$home/local/big" >"$home/local/big.sha256"
timed "reading it back, O_DIRECT" big_checksum
timed "fio, verified" fio --name=random --filename="$mount_point/fio" --size="${big_mebibytes}m" --rw=randwrite --bs=4k --direct=1 \
  --fdatasync=16 --io_size=4m --verify=crc32c --verify_fatal=1 --verify_state_save=0 --ioengine=psync --output="$home/logs/fio.log"
