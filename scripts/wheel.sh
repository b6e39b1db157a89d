#!/usr/bin/env bash
# Builds a Python wheel that `pip install` puts into any environment with the same
# torch, on any Linux with glibc 2.34 or newer (RHEL 9, Ubuntu 22.04, Debian 12) if it
# is built on Debian 12; the last line says which glibc it needs:
#   scripts/wheel.sh            dist/abtrain-VERSION-py3-none-linux_x86_64.whl
#   scripts/wheel.sh --cpu      without CUDA; only for a machine that has no nvcc
# It holds the program, the plug-ins for MPI, the configurations, the batch files for
# Slurm, completion for shells, and the Python module abtrain.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

settings=()
case ${1-} in
  -h | --help)
    sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
    exit 0
    ;;
  --cpu) settings=(-C cmake.define.ABTRAIN_CUDA=OFF) ;;
  '') ;;
  *) fail "unknown argument '$1': scripts/wheel.sh [--cpu]" ;;
esac
scripts/setup.sh
backend=$(sed -n 's/^requires = \["\(.*\)"\]/\1/p' pyproject.toml)
tools="$cache/wheel-${backend##*==}"
if [[ ! -f $tools/complete ]]; then
  say "$backend into $tools"
  rm -rf "$tools"
  /usr/bin/python3 -m venv "$tools"
  "$tools/bin/python" -m pip install --quiet --disable-pip-version-check "$backend"
  touch "$tools/complete"
fi

mkdir -p build dist
say "build the wheel in build/portable-tree"
rm -rf build/wheel
run_logged "$tools/bin/python" -m pip wheel --disable-pip-version-check --verbose --no-deps \
  --no-build-isolation --wheel-dir build/wheel "${settings[@]}" .
wheel=$(echo build/wheel/abtrain-*.whl)

# Looks at what was packed.
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
"$tools/bin/python" -m zipfile --extract "$wheel" "$unpacked"
programs=("$unpacked"/abtrain/bin/abtrain "$unpacked"/abtrain/lib/abtrain/*.so)
check_libraries "${programs[@]}"
if readelf -d "${programs[@]}" | grep -E 'R(UN)?PATH' | grep -E '(\[|:)/'; then
  fail "the programs of the wheel name folders of this machine"
fi
mv "$wheel" dist/
glibc=$(readelf --version-info "${programs[@]}" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
say "dist/$(basename "$wheel"): $(du -m "dist/$(basename "$wheel")" | cut -f1) MiB, needs ${glibc/_/ }"
