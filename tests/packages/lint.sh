#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the distributions' own checkers say of the packages, the units and the manuals: printed; errors fail.
# usage: lint.sh DEBS RPMS
set -uo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
debs=${1:?usage: lint.sh DEBS RPMS}
rpms=${2:?usage: lint.sh DEBS RPMS}
failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# verdict NAME COMMAND...: its output, then ok or FAILED.
verdict() {
  local name=$1
  shift
  if "$@" >"$scratch/out" 2>&1; then echo "  ok  $name"; else echo "  FAILED  $name"; failed=1; fi
  sed 's/^/      /' "$scratch/out"
}

lint_debs() { lintian --allow-root --fail-on error --suppress-tags bad-distribution-in-changes-file "$debs"/*.deb; }
lint_rpms() {
  rpmlint --config "$source/packaging/rpm/rpmlint.toml" "$rpms"/*.rpm
}
unpack() {
  for package in "$debs"/*.deb; do dpkg-deb -x "$package" "$scratch/tree"; done
}
pages() {
  local page bad=0
  for page in $(find "$scratch/tree/usr/share/man" -type f); do
    zcat "$page" >"$scratch/page"
    man --warnings=w -E UTF-8 -l -Tutf8 -Z "$scratch/page" >/dev/null 2>"$scratch/warnings"
    if [ -s "$scratch/warnings" ]; then bad=1; echo "$page"; cat "$scratch/warnings"; fi
  done
  return $bad
}
# The daemons and manuals that units name are looked for here.
units() {
  local unit
  sed -i "s|=/usr/sbin/|=$scratch/tree/usr/sbin/|" "$scratch"/tree/{usr/,}lib/systemd/system/*.service 2>/dev/null
  MANPATH=$scratch/tree/usr/share/man systemd-analyze verify $(find "$scratch/tree" -name 'pnfsrdma-*.service' -type f) 2>"$scratch/said"
  cat "$scratch/said"
  [ ! -s "$scratch/said" ]
}
security() {
  local unit
  for unit in "$source"/packaging/systemd/*.service; do
    systemd-analyze security --offline=true --threshold=49 "$unit" | tail -n 1 || return 1
  done
}

verdict "lintian: no errors" lint_debs
verdict "rpmlint: no errors" lint_rpms
unpack
verdict "manuals: no warnings of man" pages
verdict "systemd-analyze verify: silent" units
verdict "systemd-analyze security: at most OK" security
exit $failed
