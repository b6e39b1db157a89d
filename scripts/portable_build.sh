#!/usr/bin/env bash
# Builds programs that run on another machine, and collects all files needed there:
#   scripts/portable_build.sh [FOLDER]        (default: build/portable)
# That machine needs x86-64, glibc 2.28 or newer (RHEL 8, Ubuntu 20.04) and a Python
# with the same torch, but no network, CMake or GoogleTest; MPI only for processes on
# CPUs. On it, call:
#   FOLDER/run abtrain doctor                 any program of FOLDER/bin
#   FOLDER/scripts/gpu_check.sh --build FOLDER
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1-} in
  -h | --help)
    sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
    exit 0
    ;;
  -*) fail "unknown argument '$1': scripts/portable_build.sh [FOLDER]" ;;
esac
folder=$(realpath -m "${1:-build/portable}")
may_replace "$folder" TORCH
tree=build/portable-tree
scripts/setup.sh

# The floors with tests that need a GPU: their suites' names begin with Gpu.
mapfile -t floors < <(grep -lE '(TEST|TEST_F|TEST_P)\(Gpu' tests/*/*.cpp | cut -d/ -f2 | sort -u |
  while read -r floor; do [[ ! -d lib/$floor ]] || echo "$floor"; done)
mkdir -p build
say "configure $tree"
run_logged cmake --preset portable
say "build: abtrain, benchmarks, tests of ${floors[*]}"
run_logged cmake --build "$tree" --target abtrain benchmarks "${floors[@]/#/test_}"

# Made under another name first, so that a folder which exists is complete.
rm -rf "$folder.new"
mkdir -p "$folder.new"/{bin,bench,lib,scripts,share/abtrain}
for program in "$tree/abtrain" "$tree"/bench/bench_* "${floors[@]/#/$tree/tests/test_}"; do
  if [[ -f $program && -x $program ]]; then
    strip -o "$folder.new/bin/$(basename "$program")" "$program"
  fi
done
check_libraries "$folder.new"/bin/*

cp bench/*.py "$folder.new/bench/"
cp -r "$tree/lib/abtrain" "$folder.new/lib/"
cp -r configs "$folder.new/share/abtrain/"
cp -r scripts/gpu_check.sh scripts/gpu_check "$folder.new/scripts/"
rm -rf "$folder.new/scripts/gpu_check/__pycache__"
cp scripts/portable_run.sh "$folder.new/run"
cp LICENSE "$folder.new/"
echo "$default_torch" >"$folder.new/TORCH"
git describe --always --dirty --exclude='*' --abbrev=10 >"$folder.new/REVISION" 2>/dev/null ||
  echo unknown >"$folder.new/REVISION"
rm -rf "$folder"
mv "$folder.new" "$folder"
say "$folder: $(du -sm "$folder" | cut -f1) MiB, packed $(tar -cz -C "$folder" . | wc -c | numfmt --to=iec)"
