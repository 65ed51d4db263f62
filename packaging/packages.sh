#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deb and rpm of a finished release build, for this system, in BUILD/packages.
# usage: packaging/packages.sh BUILD [TARGET_FOLDER]      (PNFSRDMA_PACKAGE_VERSION: another version than the tree's)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:?usage: packages.sh BUILD [TARGET_FOLDER]}
target=${2:-$build/packages}
[ -s "$build/web/index.html" ] || { echo "packages.sh: the console's pages are not built: $build/web" >&2; exit 1; }
rm -rf "$target"
"$here/deb.sh" "$build" "$target/deb"
"$here/rpm.sh" "$build" "$target/rpm"
ls -l "$target"/deb/*.deb "$target"/rpm/*.rpm | awk '{printf "  %7.2f MB  %s\n", $5 / 1e6, $NF}'
