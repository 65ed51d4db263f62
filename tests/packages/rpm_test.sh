#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The rpm packages installed into an empty tree, verified, upgraded and erased. Scripts and dependencies are those of a system
# that is not here: the scripts are checked by a shell, the dependencies shown.
# usage: rpm_test.sh RPMS NEWER_RPMS
set -euo pipefail
rpms=$(cd "${1:?usage: rpm_test.sh RPMS NEWER_RPMS}" && pwd)
newer=$(cd "${2:?usage: rpm_test.sh RPMS NEWER_RPMS}" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
case_of() { echo "  ok  $*"; }
into() { rpm --root "$tree" --dbpath /var/lib/rpm --nodeps --noscripts "$@"; }

into -i "$rpms"/*.rpm
[ "$(into -qa | wc -l)" = 3 ]
into -Va --nodeps
for file in usr/sbin/pnfsrdma-brickd usr/sbin/pnfsrdma-mdsd usr/bin/pnfsrdma-fuse usr/bin/pnfsrdma usr/lib/systemd/system/pnfsrdma-mdsd.service \
  usr/share/man/man5/pnfsrdma.json.5.gz usr/share/pnfsrdma/web/index.html etc/pnfsrdma/brickd.json; do
  [ -s "$tree/$file" ] || { echo "rpm_test.sh: $file is missing" >&2; exit 1; }
done
[ "$(readlink -f "$tree/usr/sbin/mount.pnfsrdma")" = "$tree/usr/bin/pnfsrdma-fuse" ]
case_of "rpm: installed, every file verified ($(into -qal | wc -l) files)"
into -qa --qf '%{NAME}\n' | while read -r package; do
  rpm -qp --scripts "$rpms/$package"-[0-9]*.rpm 2>/dev/null | sed '/^[a-z]* scriptlet/d' >"$tree/scripts"
  sh -n "$tree/scripts"
done
rm -f "$tree/scripts"
rpm -qp --requires "$rpms"/pnfsrdma-server-*.rpm 2>/dev/null | grep -q 'libibverbs.so'
case_of "rpm: scripts are sound shell, libraries are required by name"
echo '// changed' >>"$tree/etc/pnfsrdma/mdsd.json"
into -U "$newer"/*.rpm
grep -q '// changed' "$tree/etc/pnfsrdma/mdsd.json"
case_of "rpm: upgraded, changed configuration kept"
into -qa | xargs rpm --root "$tree" --dbpath /var/lib/rpm --nodeps --noscripts -e 2>/dev/null
[ -z "$(find "$tree" -name '*pnfsrdma*' -not -path '*/etc/*' -not -path '*/var/lib/rpm/*')" ]
case_of "rpm: erased, nothing is left but changed configuration"
