#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in a mount namespace of its own, so that whatever ends it, no mount is left behind. FUSE mounts of the
# host are not taken along: a copy here would keep them alive, and their clients running, after the host's umount.
# usage: own_mounts.sh COMMAND [ARGUMENT...]
set -euo pipefail
[ "$#" -gt 0 ] || { echo "usage: $0 COMMAND [ARGUMENT...]" >&2; exit 2; }
# shellcheck disable=SC2016  # expanded inside
exec unshare --mount --propagation private bash -euc '
  awk '\''{ for (i = 7; i < NF; i++) if ($i == "-") { if ($(i + 1) ~ /^fuse(blk)?([.]|$)/) print $5; break } }'\'' /proc/self/mountinfo |
    while read -r mounted; do umount -l "$(printf %b "$mounted")"; done
  exec "$@"' own_mounts "$@"
