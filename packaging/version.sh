#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Which version this tree is, from git or, in a tarball of `git archive`, from packaging/version.txt:
#   tag v0.1.0 -> 0.1.0      12 commits later -> 0.1.0+12.g1a2b3c4      without a tag -> 0.1.0~20261121T234715.g1a2b3c4
# Changes that are not committed add ".changed". Debian and rpm sort them in that order.
# usage: packaging/version.sh [--epoch | --header FILE]
#   --epoch: seconds of the commit, for SOURCE_DATE_EPOCH      --header: writes FILE, only if it has to change
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/.." && pwd)
release=$(sed -n 's/^project(pnfsrdma VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")

# Git of this tree, and not of one around it. Whoever owns it: only reading.
ours() { git -c safe.directory='*' -C "$root" "$@"; }
if [ "$(ours rev-parse --show-toplevel 2>/dev/null)" = "$root" ]; then
  described=$(ours describe --tags --abbrev=9 --match 'v[0-9]*' 2>/dev/null || true)
  read -r hash epoch <<TEXT
$(ours log -1 --format='%h %ct' --abbrev=9)
TEXT
  changed=$(ours status --porcelain --untracked-files=no 2>/dev/null | head -n 1)
else
  described=$(sed -n 1p "$here/version.txt")
  read -r hash epoch <<TEXT
$(sed -n 2p "$here/version.txt")
TEXT
  changed=
  # Neither git nor an archive.
  case "$hash" in *Format*) described= hash=unknown epoch=0 ;; esac
  hash=$(printf %.9s "$hash")
fi

case "$described" in
  v*-*-g*) version=$(printf '%s' "${described#v}" | sed 's/-\([0-9]*\)-\(g[0-9a-f]*\)$/+\1.\2/') ;;
  v*) version=${described#v} ;;
  *) version="$release~$(date -u -d "@$epoch" +%Y%m%dT%H%M%S).g$hash" ;;
esac
[ -z "$changed" ] || version="$version.changed"

case "${1:-}" in
  "") echo "$version" ;;
  --epoch) echo "$epoch" ;;
  --header)
    text=$(printf '// Made by packaging/version.sh.\n#define PNFSRDMA_VERSION "%s"\n' "$version")
    [ "$(cat "$2" 2>/dev/null)" = "$text" ] || printf '%s\n' "$text" >"$2"
    ;;
  *) echo "usage: $0 [--epoch | --header FILE]" >&2; exit 2 ;;
esac
