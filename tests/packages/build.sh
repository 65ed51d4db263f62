#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds this checkout in a tree of RELEASE and makes Debian packages of it, in TARGET. The console's pages come from PAGES
# (a build of this machine): they are the same everywhere. Sources and build stand where the lab has them, so that both share
# one ccache.
# usage: build.sh CACHE RELEASE PAGES TARGET [VERSION]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
[ $# -ge 4 ] || { echo "usage: build.sh CACHE RELEASE PAGES TARGET [VERSION]" >&2; exit 2; }
cache=$1 release=$2 pages=$3 version=${5:-}
mkdir -p "$4"
target=$(cd "$4" && pwd)
root=$("$here/tree.sh" "$cache" "$release" --build)
build=$cache/packages/build/$release-$(printf '%s' "$source" | sha256sum | cut -c1-12)
log=$build/package-build.log
mkdir -p "$build" "$cache/ccache"

inside() {
  set -euo pipefail
  mount --bind "$source" "$root/source"
  mount -o remount,bind,ro "$root/source"
  mount --bind "$pages" "$root/pages"
  mount --bind "$build" "$root/build"
  mount --bind "$target" "$root/out"
  mount --bind "$cache/ccache" "$root/ccache"
  mount -t proc proc "$root/proc"
  mount --bind /dev "$root/dev"
  # shellcheck disable=SC2016  # expanded inside
  env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root CCACHE_DIR=/ccache \
    CCACHE_MAXSIZE=3G JOBS="${JOBS:-$(nproc)}" PNFSRDMA_PACKAGE_VERSION="$version" chroot "$root" sh -euc '
    cmake -S /source -B /build --preset release -DPNFSRDMA_TESTS=OFF -DPNFSRDMA_WEB=OFF -DPNFSRDMA_WEB_PAGES=/pages >/dev/null
    cmake --build /build -j "$JOBS" --target pnfsrdma-brickd pnfsrdma-mdsd pnfsrdma-fuse pnfsrdma libpnfsrdma pnfsrdma-preload pnfsrdma-bench man completion
    /source/packaging/deb.sh /build /out'
}
export -f inside
export source cache root pages build target version
if ! "$here/../vm/own_mounts.sh" bash -c inside >"$log" 2>&1 </dev/null; then
  grep -E -A5 'error|FAILED' "$log" | head -n 60 >&2 || tail -n 20 "$log" >&2
  tail -n 5 "$log" >&2
  echo "build.sh: the packages of $release could not be built (above); the whole log is $log" >&2
  exit 1
fi
