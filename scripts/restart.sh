#!/usr/bin/env bash
# Runs a command and restarts it when it fails, for runs that continue from their
# last checkpoint (abtrain --resume auto):
#   scripts/restart.sh [--max-restarts N] [--final CODE]... [--hosts FILE
#     [--min-workers N]] -- COMMAND...
# It restarts at most N times (3), after pauses of 1, 2, 4, ... 60 s. It does not
# restart after the exit codes 0, 2, 65, 66, 70 and 78, where another try would end
# the same way, nor after those given with --final. TERM, INT, USR1 and HUP are
# passed on to the command, and no restart follows them. The exit code is the
# command's last one, or 75 where a signal came during a pause.
#
# --hosts FILE names the hosts, one per line as for mpirun: `HOST slots=N` or `HOST:N`,
# with 1 slot where none is given. Before each start all are asked whether they answer,
# and the command is started with those that do: {hosts} in it becomes a file with
# their lines, {workers} the number of their slots:
#   scripts/restart.sh --hosts hosts.txt -- mpirun --hostfile {hosts} -np {workers} \
#     abtrain --config my.yaml --resume auto
# A host that answers again takes part in the next start. If the command refuses fewer
# workers than all slots with exit code 78, it is started with one worker less, and so
# on. Fewer than --min-workers (1) count as a failure with exit code 69. A host is asked
# by `ssh -o BatchMode=yes -o ConnectTimeout=5 HOST true`, or by the shell command in
# ABTRAIN_HOST_CHECK, to which the host's name is appended; after 15 s it counts as lost.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/pass_signals.sh"

message() {
  printf 'restart.sh: %s\n' "$*" >&2
}

wrong_use() {
  message "$* (see restart.sh --help)"
  exit 2
}

# read_hosts: reads the file into three arrays. It is read before each start, so hosts
# may be added to it.
read_hosts() {
  local line name number=0
  names=() slots=() lines=()
  while IFS= read -r line || [[ -n $line ]]; do
    number=$((number + 1))
    line=${line%$'\r'}
    line=${line%%#*}
    read -r name _ <<<"$line" || true
    [[ -n $name ]] || continue
    slots+=(1)
    if [[ $line =~ [[:space:]]slots[[:space:]]*=[[:space:]]*([0-9]{1,6})([[:space:]]|$) ||
      $name =~ :([0-9]{1,6})$ ]]; then
      slots[-1]=$((10#${BASH_REMATCH[1]}))
    fi
    name=${name%:*}
    if [[ ! $name =~ ^[A-Za-z0-9_][A-Za-z0-9_.@-]*$ ]]; then
      message "$hosts_file:$number: expected 'HOST', 'HOST slots=N' or 'HOST:N', got '$line'"
      exit 65
    fi
    names+=("$name") lines+=("$line")
  done <"$hosts_file"
  ((${#names[@]})) || wrong_use "$hosts_file names no host"
}

answers() {
  if [[ -n ${ABTRAIN_HOST_CHECK-} ]]; then
    timeout -k 1 15 bash -c "$ABTRAIN_HOST_CHECK \"\$1\"" check "$1"
  elif [[ $1 != localhost && $1 != "$HOSTNAME" && $1 != "${HOSTNAME%%.*}" ]]; then
    timeout -k 1 15 ssh -o BatchMode=yes -o ConnectTimeout=5 "$1" true
  fi
}

# choose_hosts: asks all hosts at the same time, writes the lines of those that answer to
# $notes/hosts, and counts their slots in `workers`, and all in `all_workers`.
choose_hosts() {
  local i lost=0 asked=()
  read_hosts
  rm -f "$notes"/*
  for i in "${!names[@]}"; do
    (answers "${names[i]}" && : >"$notes/answer-$i") </dev/null >/dev/null 2>"$notes/said-$i" &
    asked+=($!)
  done
  wait "${asked[@]}" || true
  [[ -z $stopped_by ]] || return 0
  workers=0 all_workers=0
  : >"$notes/hosts"
  for i in "${!names[@]}"; do
    all_workers=$((all_workers + slots[i]))
    if [[ -e $notes/answer-$i ]]; then
      workers=$((workers + slots[i]))
      printf '%s\n' "${lines[i]}" >>"$notes/hosts"
    else
      lost=$((lost + 1))
      message "${names[i]} does not answer: $(tail -n 1 "$notes/said-$i")"
    fi
  done
  if ((lost)); then
    message "$((${#names[@]} - lost)) of ${#names[@]} hosts answer: $workers of $all_workers workers"
  fi
}

# start COMMAND...: runs the command, with the hosts and the number of workers in it.
start() {
  local words=("$@")
  if [[ -n $hosts_file ]]; then
    words=("${words[@]//'{hosts}'/"$notes/hosts"}")
    words=("${words[@]//'{workers}'/"$workers"}")
  fi
  run_passing_signals "${words[@]}"
}

hosts_file=''
workers=0
all_workers=0
min_workers=1
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
    --hosts)
      [[ -f ${2-} && -r $2 ]] || wrong_use "--hosts takes a file, got '${2-}'"
      hosts_file=$2
      shift 2
      ;;
    --max-restarts | --final | --min-workers)
      [[ ${2-} =~ ^[0-9]{1,9}$ ]] || wrong_use "$1 takes a number, got '${2-}'"
      case $1 in
        --final) final_codes+="$((10#$2)) " ;;
        --min-workers) min_workers=$((10#$2 > 0 ? 10#$2 : 1)) ;;
        *) max_restarts=$((10#$2)) ;;
      esac
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

if [[ -n $hosts_file ]]; then
  [[ "$*" == *'{workers}'* ]] || wrong_use "--hosts needs {workers} in the command"
  notes=$(mktemp -d)
  trap 'rm -rf "$notes"' EXIT
fi

pause=1
restarts=0
while :; do
  if [[ -n $hosts_file ]]; then
    choose_hosts
    if [[ -n $stopped_by ]]; then
      message "SIG$stopped_by before the start"
      exit 75
    fi
  fi
  if [[ -n $hosts_file ]] && ((workers < min_workers)); then
    code=69
    message "$workers workers are fewer than --min-workers $min_workers"
  else
    start "$@"
  fi
  # A method may not train with every number of workers. It says so itself.
  while [[ $code == 78 && -z $stopped_by ]] &&
    ((workers < all_workers && workers > min_workers)); do
    message "exit code 78 with $workers of $all_workers workers: trying $((workers - 1))"
    workers=$((workers - 1))
    start "$@"
  done
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
