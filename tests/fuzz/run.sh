#!/bin/sh
# Every fuzz target of build/asan for SECONDS of processor time (600: ten
# minutes), from another SEED each time. Inputs that fail are kept in build/asan.
# Usage: tests/fuzz/run.sh [SECONDS [SEED [TARGET...]]]
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${ABTRAIN_FUZZ_BUILD:-$here/../../build/asan}
seconds=${1:-600}
seed=${2:-$(date +%s)}
if [ $# -gt 2 ]; then shift 2; else set -- $(ls "$here/corpus"); fi
failed=
for target; do
  echo "$target: $seconds s, seed $seed"
  "$build/tests/fuzz/fuzz_$target" --seconds "$seconds" --seed "$seed" \
    --out "$build" "$here/corpus/$target" || failed="$failed $target"
done
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
