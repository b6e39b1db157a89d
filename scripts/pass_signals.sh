# Shared by scripts that wait for a long command: `source` it.
# shellcheck shell=bash disable=SC2034

# run_passing_signals COMMAND...: runs it and leaves its exit code in `code`.
# TERM, INT, USR1 and HUP that come meanwhile are handed to it; the last one's
# name is left in `stopped_by`.
run_passing_signals() {
  local number first=''
  # A process group of its own: Ctrl-C would reach it twice else, once through us.
  set -m
  "$@" </dev/null &
  command_id=$!
  set +m
  # One that came before there was a command to hand it to.
  [[ -z $stopped_by ]] || kill -s "$stopped_by" "$command_id" 2>/dev/null || true
  while :; do
    signalled=false
    number=0
    wait "$command_id" || number=$?
    # Waited for twice, as a signal came just when it had ended: 127.
    [[ $number == 127 && -n $first ]] || first=$number
    $signalled || break
  done
  command_id=''
  code=$first
}

note_signal() {
  stopped_by=$1
  signalled=true
  [[ -z $command_id ]] || kill -s "$1" "$command_id" 2>/dev/null || true
}

code=0
command_id=''
stopped_by=''
signalled=false
for signal in TERM INT USR1 HUP; do
  # shellcheck disable=SC2064  # the name of now is meant
  trap "note_signal $signal" "$signal"
done
