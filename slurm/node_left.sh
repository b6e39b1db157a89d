#!/usr/bin/env bash
# node_left.sh NODE: fails if a node of the job has been lost, and says why. Where Slurm
# does not answer, the node counts as there: srun would find out.
set -euo pipefail
job=$(scontrol show job --oneliner "$SLURM_JOB_ID") || exit 0
# Slurm takes a lost node out of a job with --no-kill.
nodes=$(sed -n '1s/.* NodeList=\([^ ]*\).*/\1/p' <<<"$job")
if ! scontrol show hostnames "$nodes" | grep -qxF -- "$1"; then
  echo "it is no longer a node of the job" >&2
  exit 1
fi
state=$(sinfo --noheader --Node --nodes="$1" --format=%T | head -n 1) || exit 0
# A * marks a node that does not answer.
if [[ $state == *\* || $state == down* || $state == fail* || $state == unk* ]]; then
  echo "its state is $state" >&2
  exit 1
fi
