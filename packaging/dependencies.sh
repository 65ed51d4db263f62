#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages a build, the tests or the demo need. Quiet and quick when they are there already.
# usage: packaging/dependencies.sh [--list] build|test|peers|demo|ha|bench|fuzz|tidy|web-build|web|packages-build|packages|booted|lab|tree ...
#   --list: only print the names (of Debian 12 and 13 alike)
set -eu

build="g++ cmake ninja-build ccache mold make pkg-config git librocksdb-dev libpmem2-dev libfuse3-dev fuse3 libfmt-dev
       libspdlog-dev nlohmann-json3-dev libcli11-dev libsystemd-dev libssl-dev libgtest-dev libgmock-dev
       libibverbs-dev librdmacm-dev ibverbs-providers libcpp-httplib-dev libsodium-dev prometheus-cpp-dev"
# scdoc: every build for tests makes the manuals, so that a page that cannot be made is found.
test="tshark python3 acl attr rsync fio sqlite3 iproute2 procps util-linux prometheus scdoc etcd-server"
# Other people's servers, for tests/integration/other_server_test.py. Not part of "test": the package starts an NFS server.
peers="nfs-ganesha nfs-ganesha-vfs"
demo="fio sqlite3 git attr python3 procps util-linux coreutils"
# Two metadata servers and their log, a network namespace each (tests/ha).
ha="etcd-server iproute2 python3 util-linux fuse3 keepalived"
# sshfs and GlusterFS: peers of the mount.
bench="fio sqlite3 gcc python3 git procps util-linux sshfs openssh-server glusterfs-server glusterfs-client"
fuzz="clang-19 libclang-rt-19-dev"
tidy="clang-tidy-19 clang-format-19"
# The console's pages: to build them, and to test them in a browser on a real mount.
web_build="nodejs npm"
web="nodejs npm chromium python3 util-linux"
# To make packages, and to check and install them (tests/packages).
packages_build="debhelper dpkg-dev fakeroot scdoc"
packages="$packages_build rpm lintian rpmlint man-db groff systemd debootstrap python3 util-linux iproute2"
# Of the tree that a real systemd boots in, to run the packages' units.
booted="systemd systemd-sysv dbus autofs fuse3 fish zsh ufw firewalld iproute2 procps kmod"
# Of the machine that runs the lab (tests/vm), and of the Debian 13 tree inside it.
lab="qemu-system-x86 debootstrap python3 util-linux cpio"
tree="linux-image-amd64 kmod busybox-static xz-utils ndctl iproute2 rdma-core libibverbs-dev librdmacm-dev ibverbs-providers
      ibverbs-utils perftest nfs-common nfs-kernel-server e2fsprogs librpma-dev ca-certificates"

list=0
[ "${1:-}" != --list ] || { list=1; shift; }

[ "$#" -gt 0 ] || { echo "usage: $0 [--list] build|test|peers|demo|ha|bench|fuzz|tidy|web-build|web|packages-build|packages|booted|lab|tree ..." >&2; exit 2; }
wanted=""
for set in "$@"; do
  case "$set" in
    build) wanted="$wanted $build" ;;
    test) wanted="$wanted $test" ;;
    peers) wanted="$wanted $peers" ;;
    demo) wanted="$wanted $demo" ;;
    ha) wanted="$wanted $ha" ;;
    bench) wanted="$wanted $bench" ;;
    fuzz) wanted="$wanted $fuzz" ;;
    tidy) wanted="$wanted $tidy" ;;
    web-build) wanted="$wanted $web_build" ;;
    web) wanted="$wanted $web" ;;
    packages-build) wanted="$wanted $packages_build" ;;
    packages) wanted="$wanted $packages" ;;
    booted) wanted="$wanted $booted" ;;
    lab) wanted="$wanted $lab" ;;
    tree) wanted="$wanted $tree" ;;
    *) echo "$0: unknown set '$set' (build, test, peers, demo, ha, bench, fuzz, tidy, web-build, web, packages-build, packages, booted, lab, tree)" >&2; exit 2 ;;
  esac
done

if [ "$list" -eq 1 ]; then
  # shellcheck disable=SC2086  # a list of words is meant
  printf '%s\n' $wanted | sort -u
  exit 0
fi

missing=""
for package in $wanted; do
  # Node.js may come from elsewhere, npm with it.
  case "$package" in nodejs) command -v node >/dev/null && continue ;; npm) command -v npm >/dev/null && continue ;; esac
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
