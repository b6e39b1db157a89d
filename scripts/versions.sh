#!/usr/bin/env bash
# Builds the program with LibTorch of several versions, CPU only, and tries each build: doctor,
# a short run of each kind, and the Python module with that version's PyTorch.
#   scripts/versions.sh                  the newest patch of each minor version of the range
#   scripts/versions.sh 2.9.1 2.15.0     these
# It takes about ten minutes for each version on two cores, and 5 GB below ~/.cache/abtrain at a
# time: versions that were not installed before are removed again, as is each build.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1-} in
  -h | --help)
    sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
    exit 0
    ;;
  -*) fail "unknown argument '$1': scripts/versions.sh [VERSION...]" ;;
  '') set -- 2.9.1 2.10.0 2.11.0 2.12.1 2.13.0 2.14.1 2.15.0 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# trained VERSION NAME ARGUMENTS...: prints the test loss.
trained() {
  "build/torch-$1/abtrain" "${@:3}" --output "$work/$1" --name "$2" --set device=cpu \
    --set train.threads=1 >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "torch $1: $2"; }
  /usr/bin/python3 -c 'import json, sys; print("%.4f" % json.load(open(sys.argv[1]))["loss"])' \
    "$work/$1/$2/summary.json"
}

for version in "$@"; do
  was_there=$([[ -d $cache/torch-$version ]] && echo true || echo false)
  scripts/setup.sh --tests --torch "$version"
  mkdir -p build
  run_logged cmake --preset cpu -B "build/torch-$version" -DABTRAIN_TESTS=OFF -DABTRAIN_BENCH=OFF \
    "-DABTRAIN_TORCH_VERSION=$version"
  say "build: abtrain with torch $version"
  run_logged cmake --build "build/torch-$version" --target abtrain
  "build/torch-$version/abtrain" doctor | grep -q "LibTorch  *$version" ||
    fail "abtrain doctor does not name LibTorch $version"
  mlp=$(trained "$version" mlp fashion_mnist_mlp_frugal --set train.steps=60 --set workers=2 \
    --set data.subset=4000 --set schedule.warmup_steps=5)
  resnet=$(trained "$version" resnet fashion_mnist_mlp_frugal --set train.steps=6 --set workers=2 \
    --set 'model={name: resnet18, width: 0.0625}' --set data.subset=512 --set schedule.warmup_steps=1 \
    --set train.precision=bf16)
  gpt=$(trained "$version" gpt gcide_gpt --set train.steps=6 --set workers=2)
  for part in module save_model load_model; do
    ABTRAIN_TESTS_COMPLETE=1 "$cache/torch-$version/bin/python" "tests/python/test_$part.py" \
      "build/torch-$version/abtrain" >"$work/log" 2>&1 ||
      { tail -n 40 "$work/log" >&2; fail "torch $version: tests/python/test_$part.py"; }
  done
  rm -rf "build/torch-$version"
  $was_there || rm -rf "${cache:?}/torch-$version"
  say "torch $version: losses $mlp (MLP), $resnet (ResNet-18 in bf16), $gpt (GPT); the Python module works"
done
