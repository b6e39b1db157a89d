#!/usr/bin/env bash
# Everything that needs a GPU, in one call: builds, runs the GPU tests, times
# dense and AB steps and SVDs, trains on Fashion-MNIST and, where the data is
# there, on CIFAR-10. Prints to the terminal and keeps all in a folder:
#   scripts/gpu_check.sh [FOLDER]      (default: build/gpu_check)
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1-} in
  -h | --help)
    sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
    exit 0
    ;;
esac
folder=${1:-build/gpu_check}
mkdir -p "$folder"
scripts/setup.sh
build all
failed=()

# step NAME COMMAND...: keeps the output, goes on where it fails.
step() {
  local name=$1
  shift
  say "$*"
  "$@" 2>&1 | tee "$folder/$name.txt" || failed+=("$name")
}

program=build/release/abtrain
bench=build/release/bench
step doctor "$program" doctor
grep -q '^CUDA .*compiled in' "$folder/doctor.txt" || say "warning: see doctor.txt: is CUDA compiled in?"
step tests ctest --test-dir build/release -L gpu --output-on-failure --no-tests=error
for batch in 128 512; do
  for mode in dense only-b; do
    step "step_${mode}_$batch" "$bench/bench_step" "$mode" 1 4 1 "$batch" 60
  done
done
step svd "$bench/bench_svd" 4 3
step fashion "$program" --config fashion_mnist_mlp --set device=cuda --output "$folder/runs"
step fashion_ddp "$program" --config fashion_mnist_mlp --set device=cuda --set method.name=ddp \
  --name fashion_mnist_ddp --output "$folder/runs"
if "$program" doctor | grep -q '^cifar10 .*/'; then
  step vgg "$program" --config vgg16_small_cifar10 --set device=cuda --output "$folder/runs"
  step vgg_ddp "$program" --config vgg16_small_cifar10 --set device=cuda --set method.name=ddp \
    --name vgg16_small_ddp --output "$folder/runs"
else
  say "cifar10 is not there (ABTRAIN_DATA): no vgg16-small runs"
fi
((${#failed[@]} == 0)) || fail "failed: ${failed[*]}; all output is in $folder"
say "all of it is in $folder"
