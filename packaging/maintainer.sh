#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Who answers for packages of this tree: "Name <address>", from DEBFULLNAME and DEBEMAIL, else who made the commit.
# usage: packaging/maintainer.sh [--homepage]
#   --homepage: the project's address, from PNFSRDMA_HOMEPAGE, else git's "origin" if that is https; empty: unknown
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
ours() { git -c safe.directory='*' -C "$root" "$@" 2>/dev/null; }

if [ "${1:-}" = --homepage ]; then
  origin=$(ours remote get-url origin || true)
  case "$origin" in https://*@*) origin= ;; https://*) origin=${origin%.git} ;; *) origin= ;; esac
  printf '%s\n' "${PNFSRDMA_HOMEPAGE:-$origin}"
  exit
fi
name=${DEBFULLNAME:-$(ours log -1 --format=%an || true)}
address=${DEBEMAIL:-$(ours log -1 --format=%ae || true)}
printf '%s <%s>\n' "${name:-pnfsrdma maintainers}" "${address:-maintainers@pnfsrdma.example}"
