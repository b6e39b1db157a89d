# Functions shared by the batch files, which set `root` and then `source` this file.
# shellcheck shell=bash disable=SC2154

set -euo pipefail
root=$(cd "$root" && pwd)
source "$root/scripts/pass_signals.sh"

say() {
  printf '%s %s\n' "$(date '+%F %T')" "$*" >&2
}

# fail CODE MESSAGE. Exit code 2 means wrong use, 66 that something is missing.
fail() {
  printf 'error: %s\n' "$2" >&2
  exit "$1"
}

[[ -n ${SLURM_JOB_ID-} ]] || fail 2 "submit this file with sbatch: see $root/slurm/README.md"
# The id of one task of an array, as JOB_TASK: the plain SLURM_JOB_ID of its last task
# would mean the whole array.
job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
job=${job:-$SLURM_JOB_ID}

program=${ABTRAIN:-$root/build/release/abtrain}
[[ -n ${ABTRAIN-} || -x $program ]] || program=abtrain
command -v -- "$program" >/dev/null ||
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

# run_abtrain COMMAND ARGUMENTS...: runs abtrain. After a failure it is restarted here
# from its last checkpoint, on the nodes that are left; after exit code 75 the job is
# requeued.
run_abtrain() {
  local restart=("$root/scripts/restart.sh" --max-restarts "${MAX_RESTARTS:-3}" --final 75)
  local step=("$root/slurm/step.sh")
  if ((${SLURM_JOB_NUM_NODES:-1} > 1)); then
    nodes=$(mktemp)
    trap 'rm -f "$nodes"' EXIT
    list_nodes >"$nodes"
    ABTRAIN_HOST_CHECK=$(printf %q "$root/slurm/node_left.sh")
    export ABTRAIN_HOST_CHECK
    restart+=(--hosts "$nodes" --min-workers "${MIN_WORKERS:-1}")
    step+=(--on '{hosts}' '{workers}')
  fi
  say "job $job, start $((${SLURM_RESTART_COUNT:-0} + 1)), on $SLURM_JOB_NODELIST: $program $*"
  run_passing_signals "${restart[@]}" -- "${step[@]}" "$program" "$@"
  say "job $job: exit code $code"
  if [[ $code == 75 ]]; then
    requeue
  fi
  exit "$code"
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
