#!/usr/bin/env bash
# From a fresh clone to a model that RLVR has visibly improved, on a CPU:
#
#     bash scripts/quickstart.sh                      # or with overrides: bash scripts/quickstart.sh seed=1
#
# Installs into .venv (first run only) and trains with configs/quickstart.yaml. Accuracy before and after, and where the run's
# files are, is printed at the end. Nothing is downloaded but Python packages, and nothing is sent anywhere.
set -euo pipefail
# shellcheck source=scripts/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
# shellcheck disable=SC2119 # no extras: the script's own arguments are not for it
ensure_environment

export HF_HUB_OFFLINE="${HF_HUB_OFFLINE:-1}"
export WANDB_MODE="${WANDB_MODE:-offline}"
_say "To type commands of evenkeel yourself, first: source .venv/bin/activate"
exec "$python" -m evenkeel train quickstart "$@"
