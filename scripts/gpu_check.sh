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
for model in vgg16-small resnet18 vit-tiny vgg16; do
  for mode in dense only-b; do
    step "step_${model}_$mode" "$bench/bench_step" "$model" "$mode" --threads 4 --batch 256 --steps 60
  done
done
step svd "$bench/bench_svd" 4 3
gpus=$(nvidia-smi --list-gpus | wc -l)
if ((gpus > 1)); then  # a GPU each: NCCL, from threads and from processes
  step nccl_threads "$program" --config fashion_mnist_mlp --set workers="$gpus" --set comm=nccl \
    --set method.group_size=auto --name nccl_threads --output "$folder/runs"
  torchrun=$(compgen -G "${XDG_CACHE_HOME:-$HOME/.cache}/abtrain/torch-*/bin/torchrun")
  step nccl_processes "$torchrun" --standalone --nproc-per-node "$gpus" --no-python "$program" \
    --config fashion_mnist_mlp --set workers="$gpus" --set method.group_size=auto --name nccl_processes \
    --output "$folder/runs"
fi
step fashion "$program" --config fashion_mnist_mlp --set device=cuda --output "$folder/runs"
step fashion_ddp "$program" --config fashion_mnist_mlp --set device=cuda --set method.name=ddp \
  --name fashion_mnist_ddp --output "$folder/runs"
if "$program" doctor | grep -q '^cifar10 .*/'; then
  full=(--set device=cuda --set workers=4 --set data.batch_size=128 --output "$folder/runs")
  for config in vgg16_small_cifar10 vgg16_small_cifar10_ddp resnet18_cifar10 resnet18_cifar10_ddp; do
    step "$config" "$program" --config "$config" "${full[@]}" --set model.width=1 --set train.steps=6000
  done
  step vgg16 "$program" --config vgg16_cifar10 --set device=cuda --set train.steps=1500 --output "$folder/runs"
else
  say "cifar10 is not there (ABTRAIN_DATA): no runs on it"
fi
((${#failed[@]} == 0)) || fail "failed: ${failed[*]}; all output is in $folder"
say "all of it is in $folder"
