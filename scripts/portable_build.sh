#!/usr/bin/env bash
# Builds programs that run on another machine, and collects all files needed there:
#   scripts/portable_build.sh [FOLDER]        (default: build/portable)
# That machine needs x86-64, a C library at least as new as this one's and a Python
# with the same torch, but no network, MPI, CMake or GoogleTest. On it, call:
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
tree=build/portable-tree
scripts/setup.sh

# The floors with tests that need a GPU: their suites' names begin with Gpu.
mapfile -t floors < <(grep -lE '(TEST|TEST_F|TEST_P)\(Gpu' tests/*/*.cpp | cut -d/ -f2 | sort -u)
mkdir -p build
say "configure $tree"
run_logged cmake --preset portable
say "build: abtrain, benchmarks, tests of ${floors[*]}"
run_logged cmake --build "$tree" --target abtrain benchmarks "${floors[@]/#/test_}"

# Made under another name first, so that a folder which exists is complete.
rm -rf "$folder.new"
mkdir -p "$folder.new"/{bin,bench,scripts,share/abtrain}
for program in "$tree/abtrain" "$tree"/bench/bench_* "${floors[@]/#/$tree/tests/test_}"; do
  if [[ -f $program && -x $program ]]; then
    strip -o "$folder.new/bin/$(basename "$program")" "$program"
  fi
done
# A library that is neither in the wheel nor on every system would be missing there.
strange=$(readelf -d "$folder.new"/bin/* | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort -u |
  grep -vE '^(lib(torch|c10|nccl|cud|cublas|cusolver|cusparse|curand|cufft|nvJitLink|nvrtc)|lib(stdc\+\+|gcc_s|c|m|dl|rt|pthread|gomp)\.so|ld-linux)' || true)
[[ -z $strange ]] || fail "the programs need libraries that another machine may lack: ${strange//$'\n'/ }"

cp bench/*.py "$folder.new/bench/"
cp -r configs "$folder.new/share/abtrain/"
cp -r scripts/gpu_check.sh scripts/gpu_check "$folder.new/scripts/"
rm -rf "$folder.new/scripts/gpu_check/__pycache__"
cp scripts/portable_run.sh "$folder.new/run"
cp LICENSE "$folder.new/"
git describe --always --dirty --exclude='*' --abbrev=10 >"$folder.new/REVISION" 2>/dev/null ||
  echo unknown >"$folder.new/REVISION"
rm -rf "$folder"
mv "$folder.new" "$folder"
say "$folder: $(du -sm "$folder" | cut -f1) MiB, packed $(tar -cz -C "$folder" . | wc -c | numfmt --to=iec)"
