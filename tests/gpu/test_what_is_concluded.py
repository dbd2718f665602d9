"""What the paths conclude from what they find, and once all that a CPU can try."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.catalogue import paths
from tests.gpu.machine import Machine
from tests.gpu.paths import PathError, Place, needs, trained
from tests.gpu.table import open_questions, table
from tests.paths import ROOT

CPU = Machine((), False, {"torch": "2.13.0"}, True)
TWO_GPUS = Machine(
    ("Some GPU", "Some GPU"), True, {"vllm": "0.31.0", "deepspeed": "0.19.8", "bitsandbytes": "0.50"}, True
)


def test_the_paths_are_the_list_of_what_is_not_known_without_a_gpu():
    page = (ROOT / "docs" / "devices.md").read_text()
    assert open_questions() in page, "paste: python -m tests.gpu.table"
    names = [path.name for path in paths()]
    assert names.index("bf16") == 0
    assert len(names) == len(set(names))


def test_what_cannot_run_here_is_not_run_and_says_why(tmp_path: Path):
    place = Place(tmp_path, None, CPU)
    reasons = {path.name: path.missing(place) for path in paths()}
    assert reasons["fp16"] == "takes 1 GPU, and there are 0"
    assert reasons["zero2"] == "not installed: deepspeed"
    assert reasons["agreement"] == "no run with vLLM has passed here"
    assert reasons["export"] == "there is no LoRA run to export"
    assert [name for name, reason in reasons.items() if not reason] == [
        *("bf16", "parity", "rounding", "planned", "cancellation", "resume", "benchmark", "lora")
    ]
    assert needs("vllm", gpus=2)(Place(tmp_path, None, TWO_GPUS)) == ""


def run_of(place: Place, name: str, *entries: dict[str, float]) -> None:
    place.run(name).mkdir()
    (place.run(name) / "metrics.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([{"loss": 0.1, "grad_norm": 1.0}] * 3, "3 optimizer steps"),
        ([{"loss": 0.1, "grad_norm": 1.0}] * 3 + [{"loss": float("nan"), "grad_norm": 1.0}], "losses"),
        ([{"loss": 0.0, "grad_norm": 0.0}] * 4, "every gradient was 0"),
    ],
)
def test_a_run_that_did_not_train_has_not_passed(tmp_path: Path, entries: Any, said: str):
    place = Place(tmp_path, None, CPU)
    run_of(place, "some", *entries)
    with pytest.raises(PathError, match=said):
        trained(place, "some")


def accepted(where: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "gpu", "tests/gpu"]
    return subprocess.run(
        [*command, "--table", "--json", str(where), *arguments], cwd=ROOT, capture_output=True, text=True
    )


@pytest.mark.slow
def test_all_that_a_cpu_can_try_passes_and_the_rest_is_not_run(tmp_path: Path):
    where = tmp_path / "gpu_acceptance.json"
    ended = accepted(where, "--cpu")
    assert ended.returncode == 0, ended.stdout
    found = json.loads(where.read_text())
    outcomes = {path["name"]: path for path in found["paths"]}
    assert [*outcomes] == [path.name for path in paths()]
    for name in ("bf16", "parity", "rounding", "planned", "cancellation", "lora", "resume", "export"):
        assert outcomes[name]["status"] == "passed", outcomes[name]
    for name in ("fp16", "fsdp2", "vllm_colocate", "vllm_server", "agreement"):
        assert outcomes[name]["status"] == "not run"
        assert outcomes[name]["reason"]
    assert outcomes["resume"]["facts"]["weights"] == "equal bit for bit"
    assert outcomes["parity"]["facts"] == {"ours to TRL": 0.0, "TRL to itself": 0.0}
    assert table(found) in ended.stdout
    printed = subprocess.run(
        [sys.executable, "-m", "tests.gpu.table", str(where)], cwd=ROOT, capture_output=True, text=True
    )
    assert printed.stdout == f"{table(found)}\n"
