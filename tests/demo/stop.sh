#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unmounts and stops what demo.sh left running, and removes its folder.
set -euo pipefail
# shellcheck source=tests/demo/common.sh
. "$(dirname "$0")/common.sh"
stop_everything
rm -rf "$home"
echo "The demo is stopped and $home is gone."
