#!/usr/bin/env bash
# From a fresh clone to a trained model: installs what is missing, builds the
# program and trains configs/fashion_mnist_mlp.yaml. Arguments go to abtrain:
#   scripts/quickstart.sh --set workers=2
# With a first argument that is a command (plan, doctor, ...) it runs that.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh
build abtrain
case ${1-} in
  '' | -*) set -- --config configs/fashion_mnist_mlp.yaml "$@" ;;
esac
say "build/release/abtrain $*"
exec build/release/abtrain "$@"
