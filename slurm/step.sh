#!/usr/bin/env bash
# step.sh [--on HOSTS TASKS] PROGRAM ARGUMENTS...: runs the program with one srun for the
# batch files, with one process per task of the job, or on the nodes in the file HOSTS
# with so many tasks. Its exit code is that of the task that failed first.
set -euo pipefail
place=()
if [[ $1 == --on ]]; then
  mapfile -t nodes < <(cut -d ' ' -f 1 "$2")
  if (($3 < SLURM_NTASKS)); then
    place=(--nodes="${#nodes[@]}" --nodelist="$(IFS=, && echo "${nodes[*]}")" --ntasks="$3")
  fi
  shift 3
fi
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/pass_signals.sh"

notes=$(mktemp -d)
trap 'rm -rf "$notes"' EXIT

# srun returns 0 even if a step could not be launched. So each task removes this file
# before it becomes the program; one of the tasks runs on the batch host, this one.
: >"$notes/mark"
# shellcheck disable=SC2016  # expanded by the task
become=(bash -c 'rm -f "$0"; exec "$@"' "$notes/mark")

# srun returns the largest code: where one task fails with 66, the code of a task that
# srun then ended would hide it. But it reports the ends of tasks in their order.
exec {errors}> >(
  trap '' TERM INT USR1 HUP
  exec sed -u -n "p; s/^srun: error: [^ ]*: tasks\{0,1\} [0-9,-]*: //w $notes/ends" >&2
)
filter=$!
# srun does not take over --cpus-per-task from sbatch by itself.
run_passing_signals srun --kill-on-bad-exit=1 --mpi="${SLURM_MPI_TYPE:-pmix}" \
  ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"} "${place[@]}" \
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
