#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds this checkout in the Debian 13 tree (GCC 14, release preset) into CACHE/build/<one folder a checkout>, and prints
# that folder. Sources and build folder stand at the same places inside for every checkout, so that all share one ccache.
# usage: build.sh CACHE [target...]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
cache=${1:?usage: build.sh CACHE [target...]}
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(pnfsrdma-brickd pnfsrdma-mdsd pnfsrdma-fuse pnfsrdma pnfsrdma-bench library_stress bench-transport bench-brick bench-rpma rdma_test)
build=$cache/build/$(printf '%s' "$source" | sha256sum | cut -c1-12)
root=$cache/root
log=$build/lab-build.log

mkdir -p "$build" "$cache/ccache"
exec 8>>"$cache/tree.lock" 9>"$build/lab.lock"
flock -s 8 # the tree stays as it is meanwhile
flock 9

inside() {
  mount --bind "$source" "$root/source"
  mount -o remount,bind,ro "$root/source"
  mount --bind "$build" "$root/build"
  mount --bind "$cache/ccache" "$root/ccache"
  mount -t proc proc "$root/proc"
  mount --bind /dev "$root/dev"
  # shellcheck disable=SC2016  # expanded inside
  env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root CCACHE_DIR=/ccache \
    CCACHE_MAXSIZE=3G JOBS="${JOBS:-$(nproc)}" NICE="${PNFSRDMA_LAB_NICE:-2}" chroot "$root" sh -euc '
    cmake -S /source -B /build --preset release >/dev/null
    nice -n "$NICE" cmake --build /build -j "$JOBS" --target "$@"' build "${targets[@]}"
}
export -f inside
export source cache build root targets_text="${targets[*]}"
if ! "$here/own_mounts.sh" bash -c 'set -euo pipefail; read -ra targets <<<"$targets_text"; inside' \
    >"$log" 2>&1 </dev/null; then
  grep -E -A5 'error|warning|FAILED' "$log" | head -n 60 >&2 || tail -n 20 "$log" >&2
  echo "build.sh: the build in the Debian 13 tree failed (above); its whole log is $log" >&2
  exit 1
fi
grep -E -A5 'warning: ' "$log" | head -n 40 >&2 || true
echo "$build"
