# SPDX-License-Identifier: Apache-2.0
# What every scenario is made of. Sourced, not run. A case prints one line that lab.py counts:
# "PASS name (seconds)", "FAIL name (seconds)" after what it printed last, or "SKIP name: reason".
# A program's start costs an emulated processor 15 ms and more, its shell's own words next to nothing.
# shellcheck shell=bash
bin=${PNFSRDMA_BIN:-/build/bin}
scenario=${0##*/}
scenario=${scenario%.sh}
logs=/out/$scenario.logs
mkdir -p "$logs"
failures=0
case_code=0 # of the last case
exec {silence}<> <(:)

pause() { read -rt "$1" -u "$silence" || true; } # seconds: a sleep without a program

# case_of "what is true" command...: the command runs in a subshell under set -e; its output is kept in /out. Whether it
# passed is asked afterwards ("if passed"): in a condition ("if case_of …") bash ignores set -e in all that it calls.
case_of() {
  local name=$1 begin log
  shift
  (set -e; false; true)
  if [ $? -eq 0 ]; then
    failures=$((failures + 1)) case_code=1
    printf 'FAIL %s: %s (case_of in a condition would not see the command fail)\n' "$scenario" "$name"
    return 1
  fi
  begin=$SECONDS
  log=$logs/${name//[!a-zA-Z0-9]/_}.log
  (set -euo pipefail; "$@") >"$log" 2>&1 </dev/null &
  wait $! # not "if (…)", which would switch set -e off inside
  case_code=$?
  if [ $case_code -eq 0 ]; then
    printf 'PASS %s: %s (%d s)\n' "$scenario" "$name" $((SECONDS - begin))
    return 0
  fi
  failures=$((failures + 1))
  tail -n 25 "$log" | sed 's/^/    | /'
  dmesg >"$log.kernel"
  tail -n 5 "$log.kernel" | sed 's/^/    kernel | /'
  printf 'FAIL %s: %s (%d s, exit code %d)\n' "$scenario" "$name" $((SECONDS - begin)) $case_code
  return 1
}

passed() { return $((case_code != 0)); } # the last case

skip() { printf 'SKIP %s: %s: %s\n' "$scenario" "$1" "$2"; }

# The scenario's end: the exit code says whether all cases passed.
finish() { exit $((failures > 0)); }

wait_for() { # seconds what command...
  local seconds=$1 what=$2 end
  shift 2
  end=$((SECONDS + seconds))
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || { echo "not within $seconds s: $what"; return 1; }
    pause 0.1
  done
}

# The demo, scaled for an emulated processor; its knobs (tests/demo/common.sh) come from the caller's environment.
demo() {
  PNFSRDMA_DEMO_FILES=${PNFSRDMA_DEMO_FILES:-15} PNFSRDMA_DEMO_MEBIBYTES=${PNFSRDMA_DEMO_MEBIBYTES:-8} \
    PNFSRDMA_DEMO_TRANSACTIONS=${PNFSRDMA_DEMO_TRANSACTIONS:-5} CHECK=1 /source/tests/demo/demo.sh "$bin"
}
