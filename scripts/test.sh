#!/usr/bin/env bash
# Installs what is missing, builds everything and runs the tests.
#   scripts/test.sh             runs the quick tests
#   scripts/test.sh --slow      runs the slow ones too
#   scripts/test.sh --gpu       runs only those that need a GPU
#   scripts/test.sh -R comm     passes other arguments on to ctest
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

labels=(-LE 'slow')
arguments=()
for argument in "$@"; do
  case $argument in
    --slow) labels=() ;;
    --gpu) labels=(-L gpu) ;;
    -h | --help)
      sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) arguments+=("$argument") ;;
  esac
done

scripts/setup.sh --tests
# A build that was configured before would not look again for what was missing then. From here on
# a test that lacks a part which setup.sh brings fails; others say what they lack and are skipped.
[[ ! -f build/release/build.ninja ]] || run_logged cmake build/release
export ABTRAIN_TESTS_COMPLETE=1
build all
say "ctest ${labels[*]} ${arguments[*]}"
ctest --test-dir build/release --output-on-failure --no-tests=error \
  --timeout 300 --parallel "$(nproc)" "${labels[@]}" "${arguments[@]}"
say "tests passed"
