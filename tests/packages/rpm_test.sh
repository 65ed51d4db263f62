#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The rpm packages installed into an empty tree, verified, upgraded and erased. Scripts and dependencies are those of a system
# that is not here: the scripts are checked by a shell, the dependencies looked at.
# usage: rpm_test.sh RPMS NEWER_RPMS
set -euo pipefail
rpms=$(cd "${1:?usage: rpm_test.sh RPMS NEWER_RPMS}" && pwd)
newer=$(cd "${2:?usage: rpm_test.sh RPMS NEWER_RPMS}" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
case_of() { echo "  ok  $*"; }
ask() { rpm --root "$tree" --dbpath /var/lib/rpm "$@" 2> >(grep -v 'Alien\|assuming you know' >&2); }
change() { ask --nodeps --noscripts "$@"; }

change -i "$rpms"/*.rpm
[ "$(ask -qa | wc -l)" = 5 ]
ask -Va --nodeps
for file in usr/sbin/pnfsrdma-brickd usr/sbin/pnfsrdma-mdsd usr/bin/pnfsrdma-fuse usr/bin/pnfsrdma usr/lib/systemd/system/pnfsrdma-mdsd.service \
  usr/share/man/man5/pnfsrdma.json.5.gz usr/share/pnfsrdma/web/index.html usr/lib64/libpnfsrdma.so.0 usr/lib64/pnfsrdma/libpnfsrdma-preload.so usr/include/pnfsrdma.h usr/share/man/man3/pnfsrdma_pread.3.gz etc/pnfsrdma/brickd.json; do
  [ -s "$tree/$file" ] || { echo "rpm_test.sh: $file is missing" >&2; exit 1; }
done
[ "$(readlink -f "$tree/usr/sbin/mount.pnfsrdma")" = "$tree/usr/bin/pnfsrdma-fuse" ]
case_of "rpm: installed, every file verified ($(ask -qal | wc -l) files)"
ask -q --scripts pnfsrdma-server >"$tree/scripts"
grep -q systemd-sysusers "$tree/scripts"
sed -i '/scriptlet (using/d' "$tree/scripts"
sh -n "$tree/scripts"
rm "$tree/scripts"
ask -q --requires pnfsrdma-server | grep -q 'libibverbs.so'
case_of "rpm: scripts are sound shell, libraries are required by name"
echo '// changed' >>"$tree/etc/pnfsrdma/mdsd.json"
change -U "$newer"/*.rpm
grep -q '// changed' "$tree/etc/pnfsrdma/mdsd.json"
case_of "rpm: upgraded, changed configuration kept"
mapfile -t installed < <(ask -qa)
change -e "${installed[@]}"
left=$(find "$tree" -name '*pnfsrdma*' -not -path '*/etc/*' -not -path '*/var/lib/rpm/*')
[ -z "$left" ] || { echo "rpm_test.sh: left behind: $left" >&2; exit 1; }
case_of "rpm: erased, nothing is left but changed configuration"
