#!/usr/bin/env bash
# Runs a program of this folder's bin/ with the LibTorch of a Python: the one that
# ABTRAIN_PYTHON names, else python3, else the one that scripts/setup.sh installed:
#   run PROGRAM [ARGUMENTS...]       run abtrain --config fashion_mnist_mlp
set -euo pipefail
folder=$(CDPATH="" cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if (($# == 0)) || [[ ! -x $folder/bin/$1 ]]; then
  printf 'run: expected one of: %s\n' "$(cd "$folder/bin" && echo *)" >&2
  exit 2
fi
libraries=''
torch=$(cat "$folder/TORCH")
for python in "${ABTRAIN_PYTHON:-python3}" "${XDG_CACHE_HOME:-$HOME/.cache}/abtrain/torch-$torch/bin/python"; do
  libraries=$("$python" "$folder/scripts/gpu_check/torch_folders.py" "$torch" 2>/dev/null) && break
done
if [[ -z $libraries ]]; then
  printf 'run: no Python with torch %s was found; set ABTRAIN_PYTHON to one\n' "${torch%.*}" >&2
  exit 1
fi
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
program=$folder/bin/$1
shift
exec "$program" "$@"
