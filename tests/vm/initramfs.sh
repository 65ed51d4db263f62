#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# CACHE/initramfs: busybox, guest/init and the few modules that stand between the kernel and the tree. The others are
# loaded from the tree.
# usage: initramfs.sh CACHE
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${1:?usage: initramfs.sh CACHE}
root=$cache/root
stamp=$(cat "$root/.lab-stamp" "$here/guest/init" "$0" | sha256sum | cut -d' ' -f1)

exec 9>"$cache/initramfs.lock"
flock 9
[ "$(cat "$cache/initramfs.stamp" 2>/dev/null)" != "$stamp" ] || exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
release=$(ls "$root/lib/modules")
mkdir -p "$work"/{bin,modules,proc,sys,dev,lower,upper,new}
cp "$root/bin/busybox" "$work/bin/busybox"
cp "$here/guest/init" "$work/init"
number=0
chroot "$root" sh -c "modprobe -S $release --show-depends 9pnet_virtio && modprobe -S $release --show-depends 9p &&
                      modprobe -S $release --show-depends overlay" | awk '$1 == "insmod" && !seen[$2]++ {print $2}' |
  while read -r module; do
    number=$((number + 1))
    chroot "$root" xz -dc "$module" >"$work/modules/$(printf '%02d' "$number").ko" # insmod in this order
  done
(cd "$work" && find . -print0 | cpio --null -o -H newc --quiet) | gzip -1 >"$cache/initramfs.new"
mv "$cache/initramfs.new" "$cache/initramfs"
echo "$stamp" >"$cache/initramfs.stamp"
