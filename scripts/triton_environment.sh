#!/usr/bin/env bash
# Triton, for the test that runs the CUDA kernels of TRL's head in Triton's interpreter, in a folder outside the checkout:
#
#     bash scripts/triton_environment.sh                # ${XDG_CACHE_HOME:-~/.cache}/evenkeel/triton
#     bash scripts/triton_environment.sh /some/folder   # then export EVENKEEL_TRITON=/some/folder
#     bash scripts/test.sh -m slow -n 0 tests/standin/test_triton_head.py
#
# 190 MB to fetch, 690 MB on disk; it needs no GPU. A CUDA build of torch brings it along, and nothing is to be done.
set -euo pipefail
# shellcheck source=scripts/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
ensure_environment dev
folder="${1:-${EVENKEEL_TRITON:-${XDG_CACHE_HOME:-$HOME/.cache}/evenkeel/triton}}"
wanted=triton==3.7.1 # what torch in constraints.txt pins for CUDA
if [[ ! -f "$folder/.$wanted" ]]; then
    rm -rf "$folder"
    "$python" -m pip install --disable-pip-version-check --no-input --quiet --no-deps --target "$folder" "$wanted"
    touch "$folder/.$wanted"
fi
echo "$folder is ready."
