# Functions shared by the scripts in this folder, which `source` this file.
# shellcheck shell=bash

set -euo pipefail
# A cluster's modules set these, and pip would take what they name for installed.
unset CDPATH PYTHONPATH PYTHONHOME PIP_TARGET PIP_USER
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
started_at=$SECONDS
# Where scripts/setup.sh installs.
# shellcheck disable=SC2034  # used by scripts that source this file
cache="${XDG_CACHE_HOME:-$HOME/.cache}/abtrain"
# The LibTorch of the GPU results; the portable builds use it, too.
default_torch=2.11.0

# The tools and libraries that `scripts/setup.sh --user` has installed are used first.
user_prefix=$cache/user
configure_options=()
if [[ -f $user_prefix/complete ]]; then
  export PATH="$user_prefix/bin:$PATH" CMAKE_PREFIX_PATH="$user_prefix"
  configure_options=(-DABTRAIN_TESTS=OFF -DABTRAIN_BENCH=OFF)
fi

# Prints one line with the seconds since the start.
say() {
  printf '[%3d s] %s\n' $((SECONDS - started_at)) "$*"
}

# may_replace FOLDER ENTRY: fails if the folder holds something but not this entry, by which an
# earlier result is recognized.
may_replace() {
  [[ ! -e $1 || -e $1/$2 || (-d $1 && -z $(ls -A "$1")) ]] ||
    fail "$1 exists and is no earlier result of this script; name another folder"
}

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Runs a command as root.
as_root() {
  if [[ $EUID == 0 ]]; then
    "$@"
  else
    sudo "$@"
  fi
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
    { grep -E -A8 'FAILED|[Ee]rror' "$log" || tail -n 5 "$log"; } | tail -n 60 >&2
    fail "failed: $* (full output: $log)"
  }
}

# check_libraries FILE...: a library that is neither in LibTorch's wheel nor on every
# system would be missing on another machine.
check_libraries() {
  local strange
  strange=$(readelf -d "$@" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort -u |
    grep -vE '^(lib(torch|c10|nccl|cud|cublas|cusolver|cusparse|curand|cufft|nvJitLink|nvrtc)|lib(stdc\+\+|gcc_s|c|m|dl|rt|pthread|gomp)\.so|ld-linux)' || true)
  [[ -z $strange ]] || fail "the programs need libraries that another machine may lack: ${strange//$'\n'/ }"
  # No newer versions than RHEL 8's; cmake/old_symbols.cpp sees to that.
  local version
  strange=$(objdump --dynamic-syms "$@" | grep -F '*UND*' | grep -oE '(GLIBC|GLIBCXX|CXXABI)_[0-9.]+' |
    sort -u | while read -r version; do
      case $(printf '%s\n' "$version" GLIBC_2.28 GLIBCXX_3.4.25 CXXABI_1.3.11 |
        grep "^${version%%_*}_" | sort -V | tail -n 1) in
        GLIBC_2.28 | GLIBCXX_3.4.25 | CXXABI_1.3.11) ;;
        *) echo "$version" ;;
      esac
    done)
  [[ -z $strange ]] || fail "the programs need what RHEL 8 lacks: ${strange//$'\n'/ }"
}

# build TARGET...: configures if needed, and builds in build/release.
build() {
  mkdir -p build
  if [[ ! -f build/release/build.ninja ]]; then
    say "configure build/release"
    run_logged cmake --preset release "${configure_options[@]}"
  fi
  say "build: $*"
  run_logged cmake --build build/release --target "$@"
}
