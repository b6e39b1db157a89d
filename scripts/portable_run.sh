#!/usr/bin/env bash
# Runs a program of this folder's bin/ with the LibTorch of the Python on PATH, or
# of the one that ABTRAIN_PYTHON names:
#   run PROGRAM [ARGUMENTS...]       run abtrain --config fashion_mnist_mlp
set -euo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if (($# == 0)) || [[ ! -x $folder/bin/$1 ]]; then
  printf 'run: expected one of: %s\n' "$(cd "$folder/bin" && echo *)" >&2
  exit 2
fi
python=${ABTRAIN_PYTHON:-python3}
libraries=$("$python" "$folder/scripts/gpu_check/torch_folders.py") || {
  printf 'run: %s has no torch; name a Python that has one in ABTRAIN_PYTHON\n' "$python" >&2
  exit 1
}
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
program=$folder/bin/$1
shift
exec "$program" "$@"
