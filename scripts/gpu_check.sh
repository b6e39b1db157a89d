#!/usr/bin/env bash
# Runs everything that needs a GPU in one call: tests, benchmarks and whole runs, and
# prints a table of the gates that were reached. scripts/gpu_check.sh --help says more.
set -euo pipefail
exec python3 "$(dirname "${BASH_SOURCE[0]}")/gpu_check" "$@"
