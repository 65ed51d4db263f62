#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian packages of a finished release build, for the Debian this runs on.
# usage: packaging/deb.sh BUILD TARGET_FOLDER      (PNFSRDMA_PACKAGE_VERSION: another version than the tree's;
#        DEBFULLNAME, DEBEMAIL, PNFSRDMA_HOMEPAGE: see maintainer.sh)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: deb.sh BUILD TARGET_FOLDER}" && pwd)
mkdir -p "${2:?usage: deb.sh BUILD TARGET_FOLDER}"
target=$(cd "$2" && pwd)
version=${PNFSRDMA_PACKAGE_VERSION:-$("$here/version.sh")}
epoch=$("$here/version.sh" --epoch)
maintainer=$("$here/maintainer.sh")
homepage=$("$here/maintainer.sh" --homepage)
. /etc/os-release

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/pnfsrdma"
cp -r "$here/deb" "$stage/pnfsrdma/debian"
# One version for each Debian: an upgrade of the system is one of the package.
cat >"$stage/pnfsrdma/debian/changelog" <<TEXT
pnfsrdma ($version~deb$VERSION_ID) unstable; urgency=medium

$(fold -s -w 74 "$here/changes.txt" | awk -v first=1 '{ sub(/ +$/, ""); print (first ? "  * " : "    ") $0; first = /\.$/ }')

 -- $maintainer  $(LC_ALL=C date -u -R -d "@$epoch")
TEXT
cd "$stage/pnfsrdma"
sed -i "s|^Maintainer:.*|Maintainer: $maintainer|" debian/control
if [ -n "$homepage" ]; then
  sed -i "s|^Standards-Version:.*|&\nHomepage: $homepage\nVcs-Git: $homepage.git\nVcs-Browser: $homepage|" debian/control
fi
if ! SOURCE_DATE_EPOCH=$epoch PNFSRDMA_BUILD=$build LC_ALL=C.UTF-8 TZ=UTC dpkg-buildpackage -b -us -uc -d >"$stage/log" 2>&1; then
  tail -n 40 "$stage/log" >&2
  echo "deb.sh: dpkg-buildpackage failed (above)" >&2
  exit 1
fi
mv "$stage"/*.deb "$target"
