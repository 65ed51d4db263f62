#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Debian 13 tree the lab builds in and boots: CACHE/root, with everything a build, the tests and the scenarios need.
# Made anew when its list of packages (or this file) changes; otherwise nothing happens.
# usage: tree.sh CACHE     (exit code 77: no Debian 13 can be had from here)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${1:?usage: tree.sh CACHE}
root=$cache/root
release=trixie
log=$cache/tree.log

mapfile -t packages < <("$here/../../packaging/dependencies.sh" --list build demo tree)
# Raise the number when the tree is made in another way.
stamp=$(printf '%s\n' 2 "$release" "${packages[@]}" | sha256sum | cut -d' ' -f1)
current() { [ "$(cat "$root/.lab-stamp" 2>/dev/null)" = "$stamp" ]; }

mkdir -p "$cache"
exec 9>>"$cache/tree.lock"
! current || exit 0
flock 9 # builds and machines hold it shared
! current || exit 0

# The mirror this machine itself is served by.
mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
  awk '$1 == "Debian" && $2 == "Debian" {print $3; exit}')
[ -n "$mirror" ] || { echo "lab: skipped: there is no Debian mirror in this machine's apt sources"; exit 77; }
if ! /usr/lib/apt/apt-helper download-file "${mirror%/}/dists/$release/InRelease" "$cache/InRelease" >"$log" 2>&1; then
  echo "lab: skipped: $mirror does not answer, or has no Debian 13 ($release): $(tail -n 1 "$log")"
  exit 77
fi
proxy=$(apt-config dump --format '%v' Acquire::http::Proxy)
[ -z "$proxy" ] || export http_proxy=$proxy

fill() {
  rm -rf "$root.new"
  debootstrap --variant=minbase "$release" "$root.new" "$mirror"
  # A tree that dies with the machine needs no fsync, and its kernel no initrd of Debian's.
  printf '%s\n' force-unsafe-io path-exclude=/usr/share/locale/'*' path-exclude=/usr/share/man/'*' >"$root.new/etc/dpkg/dpkg.cfg.d/lab"
  printf '#!/bin/sh\nexit 101\n' >"$root.new/usr/sbin/policy-rc.d"
  chmod 755 "$root.new/usr/sbin/policy-rc.d"
  mkdir -p "$root.new"/{source,build,ccache,out}
  [ -z "$proxy" ] || printf 'Acquire::http::Proxy "%s";\n' "$proxy" >"$root.new/etc/apt/apt.conf.d/proxy"
  cp /etc/resolv.conf /etc/hosts "$root.new/etc/"
  mount -t proc proc "$root.new/proc"
  env DEBIAN_FRONTEND=noninteractive INITRD=No LC_ALL=C chroot "$root.new" \
    apt-get install -y --no-install-recommends "${packages[@]}"
  chroot "$root.new" apt-get clean
  umount "$root.new/proc"
  rm -f "$root.new/etc/apt/apt.conf.d/proxy" "$root.new/etc/resolv.conf"
  echo lab >"$root.new/etc/hostname"
  printf '127.0.0.1 localhost lab\n' >"$root.new/etc/hosts"
  echo "$stamp" >"$root.new/.lab-stamp"
  rm -rf "$root"
  mv "$root.new" "$root"
}
echo "Making the Debian 13 tree in $root (a few minutes, once; log: $log)"
# In a mount namespace of its own: whatever ends this script, no mount is left behind.
export -f fill
export root release mirror proxy stamp
export packages_text="${packages[*]}"
if ! "$here/own_mounts.sh" bash -c 'set -euo pipefail; read -ra packages <<<"$packages_text"; fill' >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "tree.sh: the tree could not be made (above); its whole log is $log" >&2
  exit 1
fi
