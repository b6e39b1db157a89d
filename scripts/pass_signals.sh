# Functions for scripts that wait for a long command and `source` this file.
# shellcheck shell=bash disable=SC2034

# run_passing_signals COMMAND...: runs the command and stores its exit code in `code`.
# TERM, INT, USR1 and HUP that arrive meanwhile are passed on to it; the name of the
# last one is stored in `stopped_by`. If a signal came before, the command is not started, and
# the code is 75.
run_passing_signals() {
  local number first=''
  if [[ -n $stopped_by ]]; then
    code=75
    return
  fi
  # With a process group of its own, Ctrl-C reaches it only once, through this script.
  set -m
  "$@" </dev/null &
  command_id=$!
  set +m
  # Pass on a signal that came while the command was started.
  [[ -z $stopped_by ]] || kill -s "$stopped_by" "$command_id" 2>/dev/null || true
  while :; do
    signaled=false
    number=0
    wait "$command_id" || number=$?
    # 127 means that it was waited for twice, as a signal came just when it had ended.
    [[ $number == 127 && -n $first ]] || first=$number
    $signaled || break
  done
  command_id=''
  code=$first
}

note_signal() {
  stopped_by=$1
  signaled=true
  [[ -z $command_id ]] || kill -s "$1" "$command_id" 2>/dev/null || true
}

code=0
command_id=''
stopped_by=''
signaled=false
for signal in TERM INT USR1 HUP; do
  # shellcheck disable=SC2064  # expand the name now
  trap "note_signal $signal" "$signal"
done
