"""What the paths conclude from what they find, and once all that a CPU can try."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.catalogue import paths
from tests.gpu.machine import Machine
from tests.gpu.paths import AcceptancePath, PathError, Place, needs, trained
from tests.gpu.running import attempt
from tests.gpu.table import open_questions, table
from tests.paths import ROOT

CPU = Machine((), False, {"torch": "2.13.0"}, True)
TWO_GPUS = Machine(
    ("Some GPU", "Some GPU"), True, {"vllm": "0.31.0", "deepspeed": "0.19.8", "bitsandbytes": "0.50"}, True
)


def started(tmp_path: Path, program: str, facts: Any = lambda place: {"answer": 42}) -> dict[str, Any]:
    path = AcceptancePath("some", "a path", "", "", lambda _: "", lambda _: [[sys.executable, "-c", program]], facts)
    return attempt(path, Place(tmp_path, None, CPU), 60)


def test_the_paths_are_the_list_of_what_is_not_known_without_a_gpu():
    page = (ROOT / "docs" / "devices.md").read_text()
    assert open_questions() in page, "paste: python -m tests.gpu.table"
    names = [path.name for path in paths()]
    assert names.index("bf16") == 0
    assert len(names) == len(set(names))


def test_a_path_passes_when_its_commands_and_what_they_wrote_say_so(tmp_path: Path):
    outcome = started(tmp_path, "print('fine')")
    assert (outcome["status"], outcome["facts"]) == ("passed", {"answer": 42})
    assert (tmp_path / "some.log").read_text() == "fine\n"


def test_a_path_fails_by_its_status_by_what_it_wrote_or_by_what_is_missing(tmp_path: Path):
    outcome = started(tmp_path, "import sys; print('no memory'); sys.exit(3)")
    assert (outcome["status"], outcome["reason"]) == ("failed", "exit status 3: no memory")

    def not_what_it_should_be(_: Place) -> dict[str, Any]:
        raise PathError("plain DDP was trained")

    assert started(tmp_path, "", not_what_it_should_be)["reason"] == "plain DDP was trained"
    outcome = started(tmp_path, "", lambda place: trained(place, "some"))
    assert (outcome["status"], outcome["reason"].partition(":")[0]) == ("failed", "FileNotFoundError")


def test_a_path_that_does_not_end_is_ended(tmp_path: Path):
    forever = [[sys.executable, "-c", "import time; time.sleep(60)"]]
    path = AcceptancePath("some", "a path", "", "", lambda _: "", lambda _: forever, lambda _: {})
    outcome = attempt(path, Place(tmp_path, None, CPU), 0)
    assert outcome["reason"] == "the time was spent on the paths before it"
    from tests.gpu import running

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "ENOUGH", 0.0)
        outcome = attempt(path, Place(tmp_path, None, CPU), 0.5)
    assert (outcome["status"], outcome["reason"]) == ("failed", "did not end within the time that was left")


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


def test_agreement_takes_the_largest_gap_and_fails_where_nothing_was_compared(tmp_path: Path):
    place = Place(tmp_path, None, TWO_GPUS)
    agreement = next(path for path in paths() if path.name == "agreement")
    steps = [{"loss": 0.1, "grad_norm": 1.0, "vllm/agreement_max": gap} for gap in (0.01, 0.03, 0.02, 0.01)]
    run_of(place, "vllm_colocate", *steps)
    place.earlier["vllm_colocate"] = place.run("vllm_colocate")
    assert agreement.facts(place) == {"largest gap, vllm_colocate": 0.03}
    run_of(place, "vllm_server", *({"loss": 0.1, "grad_norm": 1.0} for _ in range(4)))
    place.earlier["vllm_server"] = place.run("vllm_server")
    with pytest.raises(PathError, match="vllm_server logged no vllm/agreement_max"):
        agreement.facts(place)


def test_the_table_never_shows_as_passed_what_was_not_run():
    outcome = {"what": "w", "advice": "Do so.", "reason": "", "seconds": None, "facts": {}}
    found = {
        "date": "2026-11-22",
        "device": "1 × Some GPU",
        "revision": "0123456789abcdef",
        "packages": {"torch": "2.13.0"},
        "seconds": 75.0,
        "paths": [
            {**outcome, "name": "bf16", "status": "passed", "seconds": 41.7, "facts": {"s a step": 0.512, "steps": 4}},
            {**outcome, "name": "fsdp2", "status": "failed", "seconds": 3.2, "reason": "exit status 1: a\nb|c"},
            {**outcome, "name": "fp16", "status": "not run", "reason": "takes 1 GPU, and there are 0"},
        ],
    }  # fmt: skip
    assert table(found).splitlines() == [
        "2026-11-22, 1 × Some GPU, code `0123456789ab`; torch 2.13.0. 1 passed, 1 failed, of 3 in 75 s.",
        "",
        "| path | outcome | what to do about it | seconds |",
        "|---|---|---|---|",
        "| `bf16`: w | passed: s a step 0.512; steps 4 | Do so. | 42 |",
        "| `fsdp2`: w | **failed**: exit status 1: a b\\|c | Do so. | 3 |",
        "| `fp16`: w | **not run**: takes 1 GPU, and there are 0 | Do so. |  |",
    ]


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


@pytest.mark.slow
def test_one_path_that_cannot_run_is_in_the_table_as_not_run(tmp_path: Path):
    ended = accepted(tmp_path / "some.json", "--cpu", "-k", "fp16")
    assert (ended.returncode, "1 skipped" in ended.stdout) == (0, True), ended.stdout
    assert "**not run**: takes 1 GPU, and there are 0" in ended.stdout
    assert [path["name"] for path in json.loads((tmp_path / "some.json").read_text())["paths"]] == ["fp16"]
