#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks and builds the pages. Quiet when all is well.
# usage: build.sh [OUTPUT_FOLDER]   without one: only gets what the build and the tests need
set -eu
cd "$(dirname "$0")"

# Several build folders share node_modules: one at a time.
exec 9>node_modules.lock
flock 9

if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
  npm ci --no-audit --no-fund --loglevel=error >node_modules.log 2>&1 || {
    cat node_modules.log >&2
    echo "web/build.sh: npm could not get the packages of web/package-lock.json (above)." >&2
    echo "Without a registry in reach: cmake -DPNFSRDMA_WEB=OFF builds everything else." >&2
    exit 1
  }
  touch node_modules/.package-lock.json
fi

node generate/api_types.mjs ../server/console/openapi.json src/api/generated.ts
node generate/event_meanings.mjs ../docs/events.md src/pages/events/generated.ts
[ "$#" -gt 0 ] || exit 0
node node_modules/typescript/bin/tsc --noEmit
PNFSRDMA_WEB_OUT=$1 node node_modules/vite/bin/vite.js build --logLevel warn
