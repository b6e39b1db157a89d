#!/usr/bin/env bash
# step.sh PROGRAM ARGUMENTS...: one srun of the program, a process a task of the
# job, for the batch files. Exit codes are the program's.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/pass_signals.sh"

# srun returns 0 where a step could not be launched. Each task removes this file
# before it becomes the program; the batch host, which is this one, has a task.
mark=$(mktemp)
# shellcheck disable=SC2016  # expanded in the task
become=(bash -c 'rm -f "$0"; exec "$@"' "$mark")

# What --cpus-per-task asks of sbatch does not reach srun by itself.
run_passing_signals srun --kill-on-bad-exit=1 --mpi="${SLURM_MPI_TYPE:-pmix}" \
  ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"} \
  "${become[@]}" "$@"
if [[ $code == 0 && -e $mark ]]; then
  echo 'step.sh: srun started nothing' >&2
  code=69
fi
rm -f "$mark"
exit "$code"
