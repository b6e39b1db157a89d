#!/usr/bin/env bash
# From a fresh clone to a trained model: installs what is missing, builds the
# program and trains configs/fashion_mnist_mlp.yaml. Arguments go to abtrain:
#   scripts/quickstart.sh --set workers=2
# A second call goes on with a run that was stopped, and shows one that is
# finished; --overwrite trains it anew, --name NAME another one beside it.
# With a first argument that is a command (plan, doctor, ...) it runs that.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh
build abtrain
case ${1-} in
  '' | -*)
    case " $* " in
      *' --resume'* | *' --overwrite '*) ;;
      *) set -- --resume auto "$@" ;;
    esac
    set -- --config configs/fashion_mnist_mlp.yaml "$@"
    ;;
esac
say "build/release/abtrain $*"
exec build/release/abtrain "$@"
