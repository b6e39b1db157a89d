#!/usr/bin/env bash
# Everything that needs a GPU, in one call: tests, benchmarks, whole runs and the
# table of what was reached. scripts/gpu_check.sh --help tells the rest.
set -euo pipefail
exec python3 "$(dirname "${BASH_SOURCE[0]}")/gpu_check" "$@"
