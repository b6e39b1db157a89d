# Shared by the batch files beside it, which `source` it with root set.
# shellcheck shell=bash disable=SC2154

set -euo pipefail
root=$(cd "$root" && pwd)
source "$root/scripts/pass_signals.sh"

say() {
  printf '%s %s\n' "$(date '+%F %T')" "$*" >&2
}

# Exit code 2 is wrong use, 66 something that is not there.
fail() {
  printf 'error: %s\n' "$2" >&2
  exit "$1"
}

[[ -n ${SLURM_JOB_ID-} ]] || fail 2 "this is for sbatch: see $root/slurm/README.md"
# The number of one task of an array: the plain one of its last task means all.
job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
job=${job:-$SLURM_JOB_ID}

program=${ABTRAIN:-$root/build/release/abtrain}
[[ -n ${ABTRAIN-} || -x $program ]] || program=abtrain
command -v -- "$program" >/dev/null ||
  fail 66 "no program ${ABTRAIN:-$root/build/release/abtrain}: build it, or name it in ABTRAIN"

# run_abtrain COMMAND ARGUMENTS...: a failure is started again here, from the last
# checkpoint; exit code 75 puts the job into the queue again.
run_abtrain() {
  say "job $job, start $((${SLURM_RESTART_COUNT:-0} + 1)), on $SLURM_JOB_NODELIST: $program $*"
  run_passing_signals "$root/scripts/restart.sh" \
    --max-restarts "${MAX_RESTARTS:-3}" --final 75 -- \
    "$root/slurm/step.sh" "$program" "$@"
  say "job $job: exit code $code"
  if [[ $code == 75 ]]; then
    requeue
  fi
  exit "$code"
}

# A job that was cancelled stays so, and one that is preempted without grace is
# put in the queue by Slurm itself; `incomplete` holds to that in a race too.
requeue() {
  local state
  state=$(scontrol show job --oneliner "$job" | sed -n 's/.* JobState=\([A-Z_]*\).*/\1/p')
  if [[ $state != RUNNING ]]; then
    say "job $job is being ended from outside ($state): left to Slurm"
  elif ((${SLURM_RESTART_COUNT:-0} >= ${MAX_REQUEUES:-100})); then
    say "job $job was queued again $SLURM_RESTART_COUNT times (MAX_REQUEUES): no more"
  else
    say "job $job: back into the queue"
    scontrol requeue incomplete "$job" || say "job $job could not be queued again"
  fi
}

# Slurm tells the tasks itself when it sends this shell a SIGTERM, and srun would
# kill them at once if it got one: only wait for them. srun hands on a SIGUSR1.
trap 'signalled=true' TERM
trap 'note_signal USR1' INT USR1
