#!/usr/bin/env bash
# Runs a command and restarts it when it fails, for runs that continue from their
# last checkpoint (abtrain --resume auto):
#   scripts/restart.sh [--max-restarts N] [--final CODE]... -- COMMAND...
# It restarts at most N times (3), after pauses of 1, 2, 4, ... 60 s. It does not
# restart after the exit codes 0, 2, 65, 66, 70 and 78, where another try would end
# the same way, nor after those given with --final. TERM, INT, USR1 and HUP are
# passed on to the command, and no restart follows them. The exit code is the
# command's last one, or 75 where a signal came during a pause.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/pass_signals.sh"

message() {
  printf 'restart.sh: %s\n' "$*" >&2
}

wrong_use() {
  message "$* (see restart.sh --help)"
  exit 2
}

max_restarts=3
final_codes=' 0 2 65 66 70 78 '
while (($#)); do
  case $1 in
    -h | --help)
      sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    --)
      shift
      break
      ;;
    --max-restarts | --final)
      [[ ${2-} =~ ^[0-9]{1,9}$ ]] || wrong_use "$1 takes a number, got '${2-}'"
      if [[ $1 == --final ]]; then
        final_codes+="$((10#$2)) "
      else
        max_restarts=$((10#$2))
      fi
      shift 2
      ;;
    *) wrong_use "unknown argument '$1': the command comes after --" ;;
  esac
done
(($#)) || wrong_use "no command"
command -v -- "$1" >/dev/null || {
  message "no such command: $1"
  exit 127
}

pause=1
restarts=0
while :; do
  run_passing_signals "$@"
  [[ $final_codes != *" $code "* ]] || exit "$code"
  if [[ -n $stopped_by ]]; then
    message "exit code $code after SIG$stopped_by: no restart"
    exit "$code"
  fi
  if ((restarts == max_restarts)); then
    message "exit code $code after $restarts restarts: giving up"
    exit "$code"
  fi
  restarts=$((restarts + 1))
  message "exit code $code: restart $restarts of $max_restarts in $pause s: $*"
  last_code=$code
  run_passing_signals sleep "$pause"
  if [[ -n $stopped_by ]]; then
    message "SIG$stopped_by during the pause after exit code $last_code: no restart"
    exit 75
  fi
  pause=$((pause * 2 > 60 ? 60 : pause * 2))
done
