#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes every manual of this folder in FOLDER, dated by the commit.
# usage: build.sh FOLDER
set -eu
here=$(cd "$(dirname "$0")" && pwd)
target=${1:?usage: build.sh FOLDER}
mkdir -p "$target"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$("$here/../version.sh" --epoch)}
export SOURCE_DATE_EPOCH
for page in "$here"/*.scd; do
  name=$(basename "$page" .scd)
  scdoc <"$page" >"$target/$name.new" || { echo "$page: see above" >&2; exit 1; }
  mv "$target/$name.new" "$target/$name"
done
