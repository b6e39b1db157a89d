#!/usr/bin/env bash
# Builds Python wheels, each for one minor version of torch, which `pip install` puts
# into any environment, on any Linux with glibc 2.28 or newer (RHEL 8, Ubuntu 20.04,
# Debian 11):
#   scripts/wheel.sh                    dist/abtrain-VERSION+torch2.11-py3-none-linux_x86_64.whl
#   scripts/wheel.sh --torch VERSION    for another torch, such as 2.15.0; may be repeated
#   scripts/wheel.sh --cpu              without CUDA, for a machine that has no nvcc, or where
#                                       PyPI's torch has another CUDA: 12 until torch 2.10
# A wheel holds the program, the plug-ins for MPI, the configurations, the batch files for
# Slurm, completion for shells, and the Python module abtrain.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

settings=()
versions=()
while (($#)); do
  case $1 in
    -h | --help)
      sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    --cpu)
      settings=(--config-settings=cmake.define.ABTRAIN_CUDA=OFF)
      export ABTRAIN_WHEEL_CPU=1
      ;;
    --torch)
      [[ -n ${2-} ]] || fail "--torch: expected a version, such as $default_torch"
      versions+=("$2")
      shift
      ;;
    *) fail "unknown argument '$1': scripts/wheel.sh [--cpu] [--torch VERSION]..." ;;
  esac
  shift
done
((${#versions[@]})) || versions=("$default_torch")
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

unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
mkdir -p build dist

for version in "${versions[@]}"; do
  tree=build/portable-tree  # that of scripts/portable_build.sh
  if [[ $version != "$default_torch" ]]; then
    scripts/setup.sh --torch "$version"
    tree=build/portable-torch-$version
  fi
  say "build the wheel for torch $version in $tree"
  rm -rf build/wheel "$unpacked"/*
  ABTRAIN_TORCH_VERSION=$version run_logged "$tools/bin/python" -m pip wheel --disable-pip-version-check \
    --verbose --no-deps --no-build-isolation --wheel-dir build/wheel "${settings[@]}" \
    "--config-settings=build-dir=$tree" "--config-settings=cmake.define.ABTRAIN_TORCH_VERSION=$version" .
  wheel=$(echo build/wheel/abtrain-*.whl)
  # Looks at what was packed.
  "$tools/bin/python" -m zipfile --extract "$wheel" "$unpacked"
  programs=("$unpacked"/abtrain/bin/abtrain "$unpacked"/abtrain/lib/abtrain/*.so)
  check_libraries "${programs[@]}"
  if readelf -d "${programs[@]}" | grep -E 'R(UN)?PATH' | grep -E '(\[|:)/'; then
    fail "the programs of the wheel name folders of this machine"
  fi
  mv "$wheel" dist/
  say "dist/$(basename "$wheel"): $(du -m "dist/$(basename "$wheel")" | cut -f1) MiB"
done
