#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Debian tree for packages: CACHE/packages/RELEASE (as small as debootstrap makes it: packages are installed on copies of
# it) or, with --build, CACHE/packages/RELEASE-build (with what a build needs). Made once; anew when its list changes.
# Prints its folder.
# usage: tree.sh CACHE RELEASE [--build]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${1:?usage: tree.sh CACHE RELEASE [--build|--booted]}/packages
release=${2:?usage: tree.sh CACHE RELEASE [--build|--booted]}
root=$cache/$release
packages=()
sets=()
case "${3:-}" in
  --build) sets=(build packages-build) ;;
  --booted) sets=(booted) ;;
esac
if [ ${#sets[@]} -gt 0 ]; then
  base=$("$0" "$1" "$release")
  root=$root-${3#--}
  mapfile -t packages < <("$here/../../packaging/dependencies.sh" --list "${sets[@]}")
fi
# Raise the number when the trees are made in another way.
stamp=$(printf '%s\n' 1 "$release" "${packages[@]}" | sha256sum | cut -d' ' -f1)
[ "$(cat "$root/.stamp" 2>/dev/null)" != "$stamp" ] || { echo "$root"; exit 0; }

command -v debootstrap >/dev/null || { echo "tree.sh: debootstrap is missing (packaging/dependencies.sh packages)" >&2; exit 1; }
# The mirror this machine itself is served by.
mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
  awk '$1 == "Debian" && $2 == "Debian" {print $3; exit}')
[ -n "$mirror" ] || { echo "tree.sh: no Debian mirror in this machine's apt sources" >&2; exit 1; }
proxy=$(apt-config dump --format '%v' Acquire::http::Proxy)
[ -z "$proxy" ] || export http_proxy=$proxy

mkdir -p "$cache"
log=$cache/$(basename "$root").log
fill() {
  set -euo pipefail
  rm -rf "$root.new"
  if [ -n "${base:-}" ]; then
    cp -a "$base" "$root.new"
    read -ra packages <<<"$packages_text"
    mount -t proc proc "$root.new/proc"
    env DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot "$root.new" apt-get update
    env DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot "$root.new" apt-get install -y --no-install-recommends "${packages[@]}"
    chroot "$root.new" apt-get clean
    umount "$root.new/proc"
  else
    debootstrap --variant=minbase "$release" "$root.new" "$mirror"
    printf 'force-unsafe-io\n' >"$root.new/etc/dpkg/dpkg.cfg.d/packages"
    [ -z "$proxy" ] || printf 'Acquire::http::Proxy "%s";\n' "$proxy" >"$root.new/etc/apt/apt.conf.d/proxy"
  fi
  mkdir -p "$root.new"/{source,build,pages,out,ccache}
  cp /etc/resolv.conf /etc/hosts "$root.new/etc/"
  echo "$stamp" >"$root.new/.stamp"
  rm -rf "$root"
  mv "$root.new" "$root"
}
echo "Making the tree $root (once; log: $log)" >&2
export -f fill
export root release mirror proxy stamp base
export packages_text="${packages[*]}"
if ! "$here/../vm/own_mounts.sh" bash -c fill >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "tree.sh: the tree could not be made (above); its whole log is $log" >&2
  exit 1
fi
echo "$root"
