#!/usr/bin/env bash
# From a fresh clone to a trained model: installs what is missing, builds the
# program and trains configs/fashion_mnist_mlp_frugal.yaml. Arguments go to abtrain:
#   scripts/quickstart.sh --set workers=2
# A second call continues a run that was stopped, and shows the result of one that is
# finished; --overwrite trains it again, --name NAME trains another one beside it.
# If the first argument is a command (plan, doctor, ...), that command is run.
#   scripts/quickstart.sh --install [ARGUMENTS...]
# also installs the program and its completion for shells below ~/.local.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

folder=$root/build/release
install=false
if [[ ${1-} == --install ]]; then
  install=true
  shift
fi
scripts/setup.sh
build abtrain
if $install; then
  say "install below $HOME/.local"
  run_logged cmake --install build/release --prefix "$HOME/.local"
  folder=$HOME/.local/bin
fi
case ${1-} in
  '' | -*)
    case " $* " in
      *' --resume'* | *' --overwrite '*) ;;
      *) set -- --resume auto "$@" ;;
    esac
    set -- --config configs/fashion_mnist_mlp_frugal.yaml "$@"
    ;;
  *)
    say "build/release/abtrain $*"
    exec build/release/abtrain "$@"
    ;;
esac
say "build/release/abtrain $*"
# shellcheck source=pass_signals.sh
source scripts/pass_signals.sh
# shellcheck disable=SC2154  # it sets `code`
run_passing_signals build/release/abtrain "$@"
if [[ $code == 0 && ":$PATH:" != *":$folder:"* ]]; then
  say "to call abtrain by its name:  export PATH=\"$folder:\$PATH\""
fi
exit "$code"
