#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every benchmark, each beside its ceiling in the same run.
# usage: bench.sh BIN_DIRECTORY     CEILING=folder with memfuse.cc and bench.sh (the mount's ceiling and workloads)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${1:?usage: bench.sh BIN_DIRECTORY}" && pwd)
ceiling=${CEILING:-$here/../../../shared/bench}

echo "Transport over loopback, beside plain TCP"
"$bin/bench-transport"
echo
echo "The mount while the API answers 200 requests a second, beside the same without"
"$here/console_load.py" --bin "$bin"
if [ -d "$ceiling" ]; then
  echo
  echo "The mount, beside an in-memory FUSE file system with one TCP round trip per operation"
  "$here/mount_bench.py" --bin "$bin" --ceiling "$ceiling"
else
  echo "The mount's ceiling is not here: set CEILING to the folder with memfuse.cc and bench.sh." >&2
fi
