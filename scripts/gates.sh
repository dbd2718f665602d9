#!/usr/bin/env bash
# What a release of the trainer has to prove, as a table beside the values on record (tests/gates/recorded.json):
#
#     bash scripts/gates.sh fast                # minutes: parity, equality with stock, planned gradient, residuals, zoo
#     bash scripts/gates.sh                     # all, for hours
#     bash scripts/gates.sh fast residuals      # rows by name; --help lists them
#
# Exit status: 0 all rows pass, 1 one fails, 3 one could not be run.
set -euo pipefail
# shellcheck source=scripts/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
ensure_environment dev

export HF_HUB_OFFLINE=1 WANDB_MODE=offline TRL_EXPERIMENTAL_SILENCE=1 TOKENIZERS_PARALLELISM=false
export TRANSFORMERS_VERBOSITY=error HF_HUB_DISABLE_PROGRESS_BARS=1 # the table is what counts
export OMP_NUM_THREADS=1 # sums round otherwise with another number
exec "$python" -m tests.gates "$@"
