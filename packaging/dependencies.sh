#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages a build, the tests or the demo need. Quiet and quick when they are there already.
# usage: packaging/dependencies.sh build|test|demo|fuzz|tidy ...
set -eu

build="g++ cmake ninja-build ccache mold make pkg-config git librocksdb-dev libpmem2-dev libfuse3-dev fuse3 libfmt-dev
       libspdlog-dev nlohmann-json3-dev libcli11-dev libsystemd-dev libssl-dev libgtest-dev libgmock-dev"
test="tshark python3 attr fio sqlite3 iproute2 procps util-linux"
demo="fio sqlite3 git attr python3 procps util-linux coreutils"
bench="fio sqlite3 gcc python3 git procps util-linux"
fuzz="clang-19 libclang-rt-19-dev"
tidy="clang-tidy-19 clang-format-19"

[ "$#" -gt 0 ] || { echo "usage: $0 build|test|demo|bench|fuzz|tidy ..." >&2; exit 2; }
wanted=""
for set in "$@"; do
  case "$set" in
    build) wanted="$wanted $build" ;;
    test) wanted="$wanted $test" ;;
    demo) wanted="$wanted $demo" ;;
    bench) wanted="$wanted $bench" ;;
    fuzz) wanted="$wanted $fuzz" ;;
    tidy) wanted="$wanted $tidy" ;;
    *) echo "$0: unknown set '$set' (build, test, demo, bench, fuzz, tidy)" >&2; exit 2 ;;
  esac
done

missing=""
for package in $wanted; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "install ok installed" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
  echo "$0: these packages are missing and only root can install them:$missing" >&2
  exit 1
fi
echo "Installing:$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
# shellcheck disable=SC2086  # a list of words is meant
if ! { apt-get update && apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "$0: apt-get failed (above); its whole output is in $log" >&2
  exit 1
fi
rm -f "$log"
