#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one suite of `make test`, unless the time that it needs at least is no longer there: then it is skipped, and the
# totals say so.
# usage: tests/in_time.sh SUITE RESULTS COMMAND...   until $PNFSRDMA_TEST_UNTIL (seconds since 1970), if that is set
set -euo pipefail
suite=$1 results=$2
shift 2
# On two slow processors. The lab's scenarios look at the clock themselves.
declare -A least=([unit]=0 [web]=240 [demo]=180 [tsan]=700 [fuzz]=340 [lab]=300)
left=$((${PNFSRDMA_TEST_UNTIL:-9999999999} - $(date +%s)))
# The lab begins scenarios as long as there is time: what the fuzzers need behind it is not the lab's, if both have enough.
if [ "$suite" = lab ] && [ "$left" -ge $((2 * least[lab] + least[fuzz])) ] && [ -n "${PNFSRDMA_TEST_UNTIL:-}" ]; then
  export PNFSRDMA_TEST_UNTIL=$((PNFSRDMA_TEST_UNTIL - least[fuzz]))
fi
[ "$left" -lt "${least[$suite]}" ] || exec "$@"
mkdir -p "$results"
cat >"$results/$suite.xml" <<XML
<testsuite name="$suite" tests="1" skipped="1" time="0">
<testcase name="all of it" time="0"><skipped message="$((left > 0 ? left : 0)) s are left of the time for all tests, ${least[$suite]} s are needed"/></testcase>
</testsuite>
XML
echo "$suite: skipped: no time is left"
