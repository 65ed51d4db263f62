#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The transport's test-suite, isolation and fencing included, over real verbs (Soft-RoCE) with atomic write, and device DAX for native flush.
. /source/tests/vm/guest/cases.sh
export PNFSRDMA_TEST_DAX=/dev/dax0.0

# The only reason to skip a test here, where all else is made to be there.
software_only="the device flushes by itself"
missing() { echo "skipped in the lab: $1" && false; }
# One at a time, so that a test which takes the machine or the program down costs only itself.
mapfile -t tests < <("$bin/rdma_test" --gtest_list_tests --gtest_filter='*/Verbs' |
  awk '/^[^ ]/ {suite = $1} /^  / {print suite $1}')
[ ${#tests[@]} -gt 0 ] || case_of "there are tests over verbs" false
for test in "${tests[@]}"; do
  result=$logs/${test//\//.}.gtest
  timeout 120 "$bin/rdma_test" --gtest_filter="$test" >"$result" 2>&1
  code=$?
  if grep -q 'SKIPPED' "$result"; then
    reason=$(grep -A1 -m1 'Skipped$' "$result" | tail -n 1)
    if [ "$reason" = "$software_only" ]; then
      skip "$test" "$reason"
    else
      case_of "$test" missing "$reason"
    fi
  else
    case_of "$test" eval "cat '$result'; exit $code"
  fi
done
finish
