#!/usr/bin/env bash
# Everything that has to pass before a change goes in:
#
#     bash scripts/test.sh                            # ruff, mypy, the site, and the tests that take seconds
#     bash scripts/test.sh -m slow                    # arguments go to pytest, which then runs alone
#     bash scripts/test.sh -m standin -n 0            # as on a GPU, without one: docs/devices.md
#     bash scripts/test.sh -m gpu -n 0 --table        # every path that needs a GPU: tests/gpu/test_paths.py
#     bash scripts/test.sh -m vllm -n 0               # vLLM on a CPU: after scripts/vllm_cpu_environment.sh
#     bash scripts/test.sh --hypothesis-profile thorough   # properties on 1,000 examples each instead of 40
#     bash scripts/test.sh tests/rewards -n 0 --pdb
set -euo pipefail
# shellcheck source=scripts/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
ensure_environment dev

export HF_HUB_OFFLINE=1 WANDB_MODE=offline
export OMP_NUM_THREADS=1 # one thread per test process: the processes share the cores; nproc would say 1 too
unset PYTHONDONTWRITEBYTECODE # set in many images: every process would compile 800 files and rewrite assertions anew
cores=$(env -u OMP_NUM_THREADS nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
processes=${PYTEST_XDIST_AUTO_NUM_WORKERS:-$((cores + 1))} # one more than cores: tests of time limits wait
# a later -m or -n replaces these
# a file's tests in one process: what they share is trained, started and imported once
tests=("$python" -m pytest -n "$((processes < 8 ? processes : 8))" --dist loadfile -m "not slow and not gpu and not standin")
if (($# > 0)); then
    exec "${tests[@]}" "$@"
fi

failed=()
check() { # NAME COMMAND…
    printf '\n== %s\n' "$1"
    "${@:2}" || failed+=("$1")
}
check "ruff check" "$python" -m ruff check .
check "ruff format" "$python" -m ruff format --check --diff .
check "mypy" "$python" -m mypy
check "docs" env NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs build --strict
check "pytest" "${tests[@]}"

if ((${#failed[@]} > 0)); then
    printf '\nFailed: %s\n' "$(IFS=, && printf '%s' "${failed[*]}")" >&2
    exit 1
fi
printf '\nAll checks passed.\n'
