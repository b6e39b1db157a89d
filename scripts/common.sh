# Shared by the scripts beside it: `source` it.
# shellcheck shell=bash

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
started_at=$SECONDS

# One plain line with the seconds since the start.
say() {
  printf '[%3d s] %s\n' $((SECONDS - started_at)) "$*"
}

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Runs a command: a terminal shows its progress; elsewhere its output goes to
# a file and only a failure is shown. One build at a time in the folder.
run_logged() {
  local log=build/release.log
  if [[ -t 1 ]]; then
    flock build/release.lock "$@" || fail "failed: $*"
    return
  fi
  flock build/release.lock "$@" >"$log" 2>&1 || {
    grep -E -A8 'FAILED|[Ee]rror' "$log" | tail -n 60 >&2
    fail "failed: $* (all of it: $log)"
  }
}

# build TARGET...: configures where needed and builds in build/release.
build() {
  mkdir -p build
  if [[ ! -f build/release/build.ninja ]]; then
    say "configure build/release"
    run_logged cmake --preset release
  fi
  say "build: $*"
  run_logged cmake --build build/release --target "$@"
}
