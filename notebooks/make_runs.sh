#!/usr/bin/env bash
# Makes the runs that the notebooks show, and executes the notebooks in place, so
# that their outputs are those of these runs: about 10 minutes on two idle cores.
#   notebooks/make_runs.sh                            all of it
#   notebooks/make_runs.sh --notebooks                only the notebooks, on the runs there are
#   notebooks/make_runs.sh --epochs 1 --seeds "1"     shorter runs (3 epochs, seeds 1 and 2 else; the sweep has its own)
#   notebooks/make_runs.sh --program FILE             another program than build/release/abtrain
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

epochs=3
seeds="1 2"
program=
runs=true
while (($#)); do
  case $1 in
    --notebooks) runs=false ;;
    --epochs | --seeds | --program)
      (($# > 1)) || fail "$1: a value is missing"
      printf -v "${1#--}" %s "$2"
      shift
      ;;
    -h | --help)
      sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown argument '$1' (--help lists them)" ;;
  esac
  shift
done

compare=runs/compare
groups=runs/fashion_mnist_groups

# train FOLDER NAME ARGUMENT...: a run of each seed.
train() {
  local folder=$1 name=$2 seed
  shift 2
  for seed in $seeds; do
    say "$folder/${name}_$seed"
    "$program" --output "$folder" --name "${name}_$seed" --resume auto --set "seed=$seed" \
      --set "train.epochs=$epochs" --set checkpoint.every=0 "$@" >"$folder/${name}_$seed.log" 2>&1 ||
      fail "$folder/${name}_$seed: exit code $?
$(tail -n 5 "$folder/${name}_$seed.log")"
  done
}

compare_runs() {
  local mlp=fashion_mnist_mlp reducer
  local often=(--set 'evaluate.every=0.5 epochs')
  train $compare ab --config $mlp "${often[@]}"
  train $compare ab_frugal --config ${mlp}_frugal "${often[@]}"
  train $compare ab_slow_network --config ${mlp}_slow_network "${often[@]}"
  train $compare local_sgd --config ${mlp}_local_sgd "${often[@]}"
  train $compare diloco --config ${mlp}_diloco "${often[@]}"
  train $compare ddp --config $mlp --set method.name=ddp "${often[@]}"
  for reducer in thc powersgd; do
    train $compare ddp_$reducer --config $mlp --set method.name=ddp \
      --set "reducer.name=$reducer" "${often[@]}"
  done
}

group_runs() {
  say "$groups"
  "$program" sweep fashion_mnist_groups >"$groups.log" 2>&1 ||
    fail "abtrain sweep fashion_mnist_groups: exit code $?
$(tail -n 5 "$groups.log")"
}

scripts/setup.sh --tests
if $runs; then
  for folder in $compare $groups; do
    [[ ! -e $folder ]] ||
      fail "$folder is there: these runs would mix with it. Move it away, or call with --notebooks"
  done
  if [[ -z $program ]]; then
    build abtrain
    program=build/release/abtrain
  fi
  mkdir -p $compare
  compare_runs
  group_runs
fi

say "execute the notebooks"
"${XDG_CACHE_HOME:-$HOME/.cache}/abtrain/torch-2.11.0/bin/python" notebooks/execute.py \
  notebooks/*.ipynb
say "done: notebooks/*.ipynb"
