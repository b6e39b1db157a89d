# Functions shared by the batch files, which set `root` and then `source` this file.
# shellcheck shell=bash disable=SC2154

say() {
  printf '%s %s\n' "$(date '+%F %T')" "$*" >&2
}

# fail CODE MESSAGE. Exit code 2 means wrong use, 66 that something is missing.
fail() {
  printf 'error: %s\n' "$2" >&2
  exit "$1"
}

[[ -n ${SLURM_JOB_ID-} ]] || fail 2 "submit this file with sbatch: see $root/slurm/README.md"
# The user's own lines, such as `module load`. They need not be written for set -eu, and
# may use the names of variables here.
source_hook() {
  # shellcheck disable=SC2034
  local root points round
  say "sourcing $PWD/slurm-hook.sh"
  # shellcheck disable=SC1091
  source ./slurm-hook.sh
}
[[ ! -f slurm-hook.sh ]] || source_hook

set -euo pipefail
root=$(cd "$root" && pwd)
source "$root/scripts/pass_signals.sh"
# After the hook, which may use these names, too. The id of one task of an array is JOB_TASK: the
# plain SLURM_JOB_ID of its last task would mean the whole array.
job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
job=${job:-$SLURM_JOB_ID}
nodes=''

# ABTRAIN is a program, or the words that start it, such as `apptainer run my.sif`. Quotes
# in them work as in a shell, but nothing is expanded.
program=("${ABTRAIN:-$root/build/release/abtrain}")
if [[ -z ${ABTRAIN-} ]]; then
  [[ -x ${program[0]} ]] || program=(abtrain)
elif ! command -v -- "$ABTRAIN" >/dev/null; then
  words=$(xargs -n 1 printf '%s\n' <<<"$ABTRAIN") || fail 2 "ABTRAIN is not a command: $ABTRAIN"
  mapfile -t program <<<"$words"
fi
command -v -- "${program[0]}" >/dev/null ||
  fail 66 "no program ${ABTRAIN:-$root/build/release/abtrain}: build it, or set ABTRAIN to its path"

# The nodes of the job with their numbers of tasks, as restart.sh reads hosts.
# SLURM_TASKS_PER_NODE is a list such as 4(x2),1.
list_nodes() {
  local part tasks=()
  for part in ${SLURM_TASKS_PER_NODE//,/ }; do
    [[ $part =~ ^([0-9]+)(\(x([0-9]+)\))?$ ]] || fail 2 "SLURM_TASKS_PER_NODE is '$SLURM_TASKS_PER_NODE'"
    for ((i = ${BASH_REMATCH[3]:-1}; i > 0; i--)); do
      tasks+=("${BASH_REMATCH[1]}")
    done
  done
  scontrol show hostnames "$SLURM_JOB_NODELIST" | while read -r node; do
    printf '%s slots=%s\n' "$node" "${tasks[0]}"
    tasks=("${tasks[@]:1}")
  done
}

# start COMMAND ARGUMENTS...: runs abtrain and stores its exit code in `code`. After a
# failure it is restarted here from its last checkpoint, on the nodes that are left.
start() {
  local restart=("$root/scripts/restart.sh" --max-restarts "${MAX_RESTARTS:-3}" --final 75)
  local step=("$root/slurm/step.sh")
  if ((${SLURM_JOB_NUM_NODES:-1} > 1)); then
    nodes=${nodes:-$(mktemp)}
    trap 'rm -f "$nodes"' EXIT
    list_nodes >"$nodes"
    ABTRAIN_HOST_CHECK=$(printf %q "$root/slurm/node_left.sh")
    export ABTRAIN_HOST_CHECK
    restart+=(--hosts "$nodes" --min-workers "${MIN_WORKERS:-1}")
    step+=(--on '{hosts}' '{workers}')
  fi
  say "job $job, start $((${SLURM_RESTART_COUNT:-0} + 1)), on $SLURM_JOB_NODELIST: ${program[*]} $*"
  run_passing_signals "${restart[@]}" -- "${step[@]}" "${program[@]}" "$@"
  say "job $job: exit code $code"
}

# finish CODE: ends the job; after exit code 75 it is requeued.
finish() {
  if [[ $1 == 75 ]]; then
    requeue
  fi
  exit "$1"
}

# run_abtrain COMMAND ARGUMENTS...: runs abtrain, and ends the job with its exit code.
run_abtrain() {
  start "$@"
  finish "$code"
}

# run_points N POINTS COMMAND ARGUMENTS...: trains N of a sweep's POINTS one after the
# other, those that the number of the array's task stands for. A point that fails does not
# keep the job from the next ones; the job ends with the largest exit code. After 75 it is
# requeued at once: its other points are trained when it starts again.
run_points() {
  local point worst=0 first=$((${SLURM_ARRAY_TASK_ID:--1} * $1)) last=$(($2 - 1))
  ((first >= 0 && first <= last)) ||
    fail 2 "no task of this array: sbatch --array=0-$((last / $1)), got '${SLURM_ARRAY_TASK_ID-}'"
  ((last < first + $1)) || last=$((first + $1 - 1))
  for ((point = first; point <= last; ++point)); do
    start "${@:3}" --task "$point"
    [[ $code != 75 ]] || finish 75
    ((code <= worst)) || worst=$code
  done
  finish "$worst"
}

# A cancelled job stays cancelled, and Slurm itself requeues one that is preempted
# without grace time; `incomplete` makes sure of that even in a race.
requeue() {
  local state
  state=$(scontrol show job --oneliner "$job" | sed -n 's/.* JobState=\([A-Z_]*\).*/\1/p')
  if [[ $state != RUNNING ]]; then
    say "job $job is being ended from outside ($state): left to Slurm"
  elif ((${SLURM_RESTART_COUNT:-0} >= ${MAX_REQUEUES:-100})); then
    say "job $job was queued again $SLURM_RESTART_COUNT times (MAX_REQUEUES): not requeued"
  else
    say "job $job: back into the queue"
    scontrol requeue incomplete "$job" || say "job $job could not be queued again"
  fi
}

# Slurm signals the tasks itself when it sends SIGTERM to this shell, and srun would
# kill them at once if it got one: only wait for them. srun passes on a SIGUSR1.
trap 'signaled=true' TERM
trap 'note_signal USR1' INT USR1
