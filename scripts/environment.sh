# shellcheck shell=bash
# Sourced by quickstart.sh and test.sh. `ensure_environment [EXTRA…]` leaves .venv/ holding this project and the named extras
# of pyproject.toml at the versions of constraints.txt, and sets `python` to its interpreter.
#
#   * The second call costs milliseconds: a stamp per extra says what was installed. Editing pyproject.toml,
#     setup.py or constraints.txt, or moving the checkout, makes it stale.
#   * Two callers at once wait for each other. A call that was killed is noticed by the next one, which starts afresh.
#   * uv is used where it is found, pip otherwise. Both follow their own settings, so a local build of torch, a mirror or a
#     CPU-only index is chosen in the environment and not here:
#         PYTHON=/path/to/python3.12    the interpreter to build .venv with
#         UV_TORCH_BACKEND=cpu          with uv and without a GPU: torch without its gigabytes of CUDA libraries
#         PIP_FIND_LINKS=/some/wheels   a folder of local wheels

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root" || exit 1
python="$root/.venv/bin/python"

_say() { printf '%s\n' "$*" >&2; }
_is_supported() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null; }
_installation() { pwd -P && cat pyproject.toml setup.py constraints.txt; } # what a stamp records

_find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3.12 python3.13 python3 python; do
        if _is_supported "$candidate"; then
            command -v "$candidate"
            return
        fi
        if [[ "$candidate" == "${PYTHON:-}" ]]; then
            _say "PYTHON=$PYTHON does not start, or is not Python 3.11, 3.12 or 3.13. Point it at one that is, or unset it."
            return 1
        fi
    done
    _say "No Python 3.11, 3.12 or 3.13 found (python3 is: $(python3 --version 2>&1 || true))."
    _say "Install one (Debian, Ubuntu: apt install python3 python3-venv; or: uv python install 3.11), or set PYTHON=/path/to/python."
    return 1
}

_is_installed() { # EXTRA…: every one has a stamp that is not stale
    local extra
    for extra in base "$@"; do
        _installation | cmp -s - ".venv/.evenkeel-$extra" || return 1
    done
    [[ -x "$python" ]]
}

_create_venv() {
    local interpreter
    interpreter="$(_find_python)" || return 1
    rm -rf .venv
    _say "Creating .venv with $("$interpreter" --version)."
    if command -v uv >/dev/null; then
        uv venv --quiet --seed --python "$interpreter" .venv
    elif "$interpreter" -c 'import ensurepip, venv' 2>/dev/null; then
        "$interpreter" -m venv .venv
    else
        _say "$interpreter lacks the modules venv and ensurepip. Install them (Debian, Ubuntu: apt install python3-venv), or install uv."
        return 1
    fi
}

_install() { # EXTRA…
    local extra extras
    extras="$(IFS=, && printf '%s' "$*")"
    local project=".${extras:+[$extras]}"
    if [[ -s .venv.lock ]]; then
        _say "An earlier installation was interrupted: starting afresh."
        rm -rf .venv
    elif [[ -f .venv/.evenkeel-base && "$(head -n 1 .venv/.evenkeel-base)" != "$(pwd -P)" ]]; then
        _say "This checkout has moved, and a virtual environment cannot: starting afresh."
        rm -rf .venv
    fi
    if [[ -x "$python" ]] && ! _is_supported "$python"; then
        _say ".venv holds $("$python" --version 2>&1), which is not Python 3.11, 3.12 or 3.13. Remove it (rm -r .venv) and run this again."
        return 1
    fi

    echo "installing" >.venv.lock # empty again when the installer has ended; still there if it was killed
    rm -f .venv/.evenkeel-*
    if [[ ! -x "$python" ]]; then
        _create_venv || { : >.venv.lock && return 1; }
    fi
    _say "Installing $project with the versions of constraints.txt into .venv: one to four minutes and 1.5 GB with a CPU build of"
    _say "torch, several GB with the CUDA build that PyPI gives to Linux."
    local installer=("$python" -m pip install --disable-pip-version-check --no-input)
    [[ -t 1 ]] || installer+=(--quiet)
    if command -v uv >/dev/null; then
        if [[ -n "${PIP_FIND_LINKS:-}" ]]; then
            export UV_FIND_LINKS="${UV_FIND_LINKS:-${PIP_FIND_LINKS// /,}}" # uv does not read pip's settings
        fi
        installer=(uv pip install --python "$python")
        [[ -t 1 ]] || installer+=(--quiet)
    fi
    if ! "${installer[@]}" --constraint constraints.txt --editable "$project"; then
        : >.venv.lock
        _say "The installation failed; the lines above say why. It needs PyPI or a mirror of it. Run this again to go on."
        return 1
    fi
    mkdir -p .package/evenkeel # the package's names as folders, for mypy
    ln -sfn ../../trainer/public/__init__.py .package/evenkeel/__init__.py
    ln -sfn ../../trainer/public/errors.py .package/evenkeel/errors.py
    ln -sfn ../../trainer ../../rewards .package/evenkeel/
    for extra in base "$@"; do
        _installation >".venv/.evenkeel-$extra"
    done
    : >.venv.lock
}

ensure_environment() { # EXTRA…
    if ! _is_installed "$@"; then
        ( # the lock is held while installing, not while training
            trap 'exit 130' INT TERM # pip turns Ctrl-C into a failure; this keeps it an interruption
            if command -v flock >/dev/null; then
                flock --nonblock 9 || { _say "Another installation into .venv is running: waiting for it." && flock 9; }
            fi
            _is_installed "$@" || _install "$@"
        ) 9>>.venv.lock
    fi
    export PATH="$root/.venv/bin:$PATH" # for ninja and accelerate, which are called by name
}
