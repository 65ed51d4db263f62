#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two checkouts of this commit in two folders give the same packages, byte for byte. Cheap with ccache, if both folders are
# below its base_dir; with --anew the compiler really runs, both times. (One build by ccache and one without it were
# seen to differ; in the object that was looked at, in debug information only.)
# usage: reproducible.sh [--anew] [FOLDER [FOLDER]]      (made, and removed; default: two beside the checkout)
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
[ "${1:-}" != --anew ] || { export CCACHE_DISABLE=1; shift; }
first=${1:-$source.first}
second=${2:-$source.second-place}
[ ! -e "$first" ] && [ ! -e "$second" ] || { echo "reproducible.sh: $first or $second exists" >&2; exit 1; }
trap 'rm -rf "$first" "$second"' EXIT

for folder in "$first" "$second"; do
  git clone -q "$source" "$folder"
  (cd "$folder"
    cmake --preset release >/dev/null
    cmake --build build/release --target pnfsrdma-brickd pnfsrdma-mdsd pnfsrdma-fuse pnfsrdma libpnfsrdma pnfsrdma-preload pnfsrdma-bench man completion web
    packaging/packages.sh build/release) >"$folder.log" 2>&1 || { tail -n 20 "$folder.log" >&2; exit 1; }
  rm -f "$folder.log"
done
cd "$first/build/release/packages"
for package in */*.deb */*.rpm; do
  cmp "$package" "$second/build/release/packages/$package"
  echo "  the same  $package  $(sha256sum <"$package" | cut -c1-16)"
done
