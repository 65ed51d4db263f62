#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every benchmark, each beside its ceiling in the same run.
# usage: bench.sh BIN_DIRECTORY     CEILING=folder with memfuse.cc and bench.sh (the mount's ceiling and workloads)
#                                   CHART=FILE.svg: only what the chart shows, and draws it
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${1:?usage: bench.sh BIN_DIRECTORY}" && pwd)
ceiling=${CEILING:-$here/../../../shared/bench}

if [ -n "${CHART:-}" ]; then
  [ -d "$ceiling" ] || { echo "CHART needs the mount's ceiling: set CEILING to the folder with memfuse.cc and bench.sh." >&2; exit 1; }
  results=$(mktemp -d)
  trap 'rm -rf "$results"' EXIT
  # shellcheck disable=SC2086 # MOUNT_BENCH is several words
  "$here/mount_bench.py" --bin "$bin" --ceiling "$ceiling" --json "$results/mount.json" ${MOUNT_BENCH:-}
  "$bin/bench-transport" --json >"$results/transport.json"
  "$here/chart.py" "$CHART" "$results/mount.json" "$results/transport.json"
  exit
fi

echo "Transport over loopback, beside plain TCP"
"$bin/bench-transport"
echo
echo "The mount while the API answers 200 requests a second, beside the same without"
"$here/console_load.py" --bin "$bin"
if [ -d "$ceiling" ]; then
  echo
  echo "The mount, beside an in-memory FUSE file system with one TCP round trip per operation"
  "$here/mount_bench.py" --bin "$bin" --ceiling "$ceiling"
  echo
  echo "The same with names, and sshfs and GlusterFS beside it"
  "$here/mount_bench.py" --bin "$bin" --ceiling "$ceiling" --rows names
else
  echo "The mount's ceiling is not here: set CEILING to the folder with memfuse.cc and bench.sh." >&2
fi
