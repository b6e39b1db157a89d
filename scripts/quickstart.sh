#!/usr/bin/env bash
# From a fresh clone to a trained model: installs what is missing, builds the
# program and trains configs/fashion_mnist_mlp_frugal.yaml. Arguments go to abtrain:
#   scripts/quickstart.sh --set workers=2
# A second call continues a run that was stopped, and shows the result of one that is
# finished; --overwrite trains it again, --name NAME trains another one beside it.
# If the first argument is a command (plan, doctor, ...), that command is run.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh
build abtrain
case ${1-} in
  '' | -*)
    case " $* " in
      *' --resume'* | *' --overwrite '*) ;;
      *) set -- --resume auto "$@" ;;
    esac
    set -- --config configs/fashion_mnist_mlp_frugal.yaml "$@"
    ;;
esac
say "build/release/abtrain $*"
exec build/release/abtrain "$@"
