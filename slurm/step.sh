#!/usr/bin/env bash
# step.sh PROGRAM ARGUMENTS...: one srun of the program, a process a task of the
# job, for the batch files. Its exit code is that of the task that failed first.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/pass_signals.sh"

notes=$(mktemp -d)
trap 'rm -rf "$notes"' EXIT

# srun returns 0 where a step could not be launched. Each task removes this file
# before it becomes the program; the batch host, which is this one, has a task.
: >"$notes/mark"
# shellcheck disable=SC2016  # expanded in the task
become=(bash -c 'rm -f "$0"; exec "$@"' "$notes/mark")

# srun returns the largest code, so that of a task it ended for another's 66 would
# hide the 66. It tells how they ended in the order in which they did.
exec {errors}> >(
  trap '' TERM INT USR1 HUP
  exec sed -u -n "p; s/^srun: error: [^ ]*: tasks\{0,1\} [0-9,-]*: //w $notes/ends" >&2
)
filter=$!
# What --cpus-per-task asks of sbatch does not reach srun by itself.
run_passing_signals srun --kill-on-bad-exit=1 --mpi="${SLURM_MPI_TYPE:-pmix}" \
  ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"} \
  "${become[@]}" "$@" 2>&"$errors"
exec {errors}>&-
wait "$filter" || true

if [[ $code == 0 && -e $notes/mark ]]; then
  echo 'step.sh: srun started nothing' >&2
  exit 69
fi
first=$(head -n 1 "$notes/ends" || true)
if [[ $code != 0 && $first =~ ^'Exited with exit code '([0-9]+)$ ]]; then
  code=${BASH_REMATCH[1]}
fi
exit "$code"
