#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a mutant's power cuts and succeeds when they find what was removed: a test must fail, by its own judgement (exit
# code 1 and a failed expectation), not by a crash, a sanitizer or a time limit. Which cut falls into a gap of microseconds
# is the threads' affair, and some gaps are met by one or two cuts of 272: four runs have to miss it.
# usage: expect_noticed.sh PROGRAM [TEST]     (TEST: the only one that finds it, where the others take a minute to pass)
set -u
for try in 1 2 3 4; do
  output=$("$1" --gtest_filter="PowerCut.${2:-*}" --gtest_fail_fast 2>&1)
  code=$?
  if [ "$code" -eq 1 ] && printf '%s' "$output" | grep -q '^\[  FAILED  \] PowerCut'; then
    printf 'run %s: %s\n' "$try" "$(printf '%s\n' "$output" | grep -m 1 'CRASH_SEED=')"
    exit 0
  fi
  [ "$code" -eq 0 ] || break  # a crash is no finding, and not to be tried again
done
printf '%s\n' "$output" | tail -n 40
echo "expect_noticed: $1 ended with $code: what was removed from it went unnoticed" >&2
exit 1
