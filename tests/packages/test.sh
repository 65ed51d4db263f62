#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make test-packages`: the packages of a finished release build, checked, installed, used, upgraded and removed, on Debian 12
# and 13 and in a tree of rpm's. Trees are kept in the lab's cache. What cannot be done here says why.
# usage: test.sh BUILD      (PNFSRDMA_TEST_RELEASES=own: only the Debian this runs on; the other needs a build of its own)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
build=$(cd "${1:?usage: test.sh BUILD}" && pwd)
cache=${PNFSRDMA_LAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pnfsrdma-lab}
version=$("$source/packaging/version.sh")
newer=$version+newer
packages=$build/packages
failed=0

skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "root is needed for chroot and mount"
[ -e /dev/fuse ] || skip "/dev/fuse is missing"
unshare --mount --net true 2>/dev/null || skip "no namespaces here"
. /etc/os-release

echo "Packages of $version, and of $newer for the upgrade"
"$source/packaging/packages.sh" "$build" "$packages"
PNFSRDMA_PACKAGE_VERSION=$newer "$source/packaging/packages.sh" "$build" "$packages/newer" >/dev/null

echo "Checkers:"
"$here/lint.sh" "$packages/deb" "$packages/rpm" || failed=1
echo "rpm:"
"$here/rpm_test.sh" "$packages/rpm" "$packages/newer/rpm" || { echo "  FAILED  rpm_test.sh"; failed=1; }

# install_on RELEASE FOLDER: FOLDER/deb and FOLDER/newer/deb on a fresh system, without and with systemd.
install_on() {
  local tree code=0
  tree=$("$here/tree.sh" "$cache" "$1")
  echo "$1:"
  "$here/../vm/own_mounts.sh" python3 -B "$here/install_test.py" "$tree" "$2/deb" "$2/newer/deb" || return 1
  tree=$("$here/tree.sh" "$cache" "$1" --booted)
  echo "$1, booted:"
  "$here/../vm/own_mounts.sh" python3 -B "$here/systemd_test.py" "$tree" "$2/deb" "$2/newer/deb" || code=$?
  [ "$code" = 0 ] || [ "$code" = 77 ] # which has said why
}
for release in bookworm trixie; do
  if [ "$VERSION_CODENAME" = "$release" ]; then
    install_on "$release" "$packages" || { echo "  FAILED  $release"; failed=1; }
  elif [ "${PNFSRDMA_TEST_RELEASES:-all}" = all ]; then
    echo "Building for $release (in a tree of its own)"
    other=$build/packages-$release
    rm -rf "$other"
    "$here/build.sh" "$cache" "$release" "$build/web" "$other/deb" "$version"
    "$here/build.sh" "$cache" "$release" "$build/web" "$other/newer/deb" "$newer"
    install_on "$release" "$other" || { echo "  FAILED  $release"; failed=1; }
  fi
done
[ $failed = 0 ] && echo "Every check of the packages passed." || echo "Some checks of the packages FAILED."
exit $failed
