# Functions shared by the scripts in this folder, which `source` this file.
# shellcheck shell=bash

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
started_at=$SECONDS

# Prints one line with the seconds since the start.
say() {
  printf '[%3d s] %s\n' $((SECONDS - started_at)) "$*"
}

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Runs a command. On a terminal its output is shown; elsewhere it goes to a file, and
# is shown only on failure. A lock allows one build at a time in the folder.
run_logged() {
  local log=build/release.log
  if [[ -t 1 ]]; then
    flock build/release.lock "$@" || fail "failed: $*"
    return
  fi
  flock build/release.lock "$@" >"$log" 2>&1 || {
    grep -E -A8 'FAILED|[Ee]rror' "$log" | tail -n 60 >&2
    fail "failed: $* (full output: $log)"
  }
}

# build TARGET...: configures if needed, and builds in build/release.
build() {
  mkdir -p build
  if [[ ! -f build/release/build.ninja ]]; then
    say "configure build/release"
    run_logged cmake --preset release
  fi
  say "build: $*"
  run_logged cmake --build build/release --target "$@"
}
