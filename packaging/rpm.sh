#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# RPM packages of a finished release build, for the libraries of the system this runs on.
# usage: packaging/rpm.sh BUILD TARGET_FOLDER      (PNFSRDMA_PACKAGE_VERSION: another version than the tree's;
#        DEBFULLNAME, DEBEMAIL, PNFSRDMA_HOMEPAGE: see maintainer.sh)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: rpm.sh BUILD TARGET_FOLDER}" && pwd)
mkdir -p "${2:?usage: rpm.sh BUILD TARGET_FOLDER}"
target=$(cd "$2" && pwd)
version=${PNFSRDMA_PACKAGE_VERSION:-$("$here/version.sh")}
SOURCE_DATE_EPOCH=$("$here/version.sh" --epoch)
export SOURCE_DATE_EPOCH

homepage=$("$here/maintainer.sh" --homepage)

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
{ cat "$here/rpm/pnfsrdma.spec"; sed 's/^/- /' "$here/changes.txt"; } >"$stage/pnfsrdma.spec"
if ! LC_ALL=C.UTF-8 TZ=UTC rpmbuild -bb --define "_topdir $stage" --define "_buildhost localhost" \
    --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
    --define "pnfsrdma_version $version" \
    --define "pnfsrdma_maintainer $("$here/maintainer.sh")" ${homepage:+--define "pnfsrdma_homepage $homepage"} \
    --define "pnfsrdma_date $(LC_ALL=C date -u -d "@$SOURCE_DATE_EPOCH" '+%a %b %d %Y')" --define "pnfsrdma_build $build" --define "pnfsrdma_source $here/.." \
    "$stage/pnfsrdma.spec" >"$stage/log" 2>&1; then
  tail -n 40 "$stage/log" >&2
  echo "rpm.sh: rpmbuild failed (above)" >&2
  exit 1
fi
mv "$stage"/RPMS/*/*.rpm "$target"
