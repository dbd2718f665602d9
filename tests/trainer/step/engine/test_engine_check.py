"""Training through vLLM's routes, and that an engine with another policy is found out: each fault, its diagnosis, and
one message on both ranks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel

from evenkeel.trainer.step.guards import FaultError
from evenkeel.trainer.step.provenance import BOUNDS
from tests.trainer.step.engine.conftest import Served
from tests.trainer.step.engine.transformers_server import TransformersServer
from tests.trainer.step.test_several_processes import on_two_processes
from tests.trainer.training import logged, max_difference, ours

METRIC = "vllm/agreement_max"


@pytest.fixture(scope="module")
def ready(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return served.trainer(tmp_path_factory.mktemp("ready"))


@pytest.fixture
def moved(ready: Any, engine: TransformersServer) -> Iterator[Any]:
    """A trainer whose every weight has moved since the engine started; afterwards as before."""
    before = {name: value.clone() for name, value in ready.model.state_dict().items()}
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in ready.model.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator))
    yield ready
    ready.model.load_state_dict(before)
    ready._metrics["train"].clear()


def test_training_on_a_servers_rollouts_certifies_every_sync(served: Served, engine, tmp_path: Path):
    strategies = {"advantage": "exchangeable", "token_weight": "adv_reweight"}
    checked = {**strategies, "agreement_bound": None}
    trainer = ours(served.model, tmp_path, strategies=checked, max_steps=2, **served.settings)
    assert engine.num_updates == 2
    agreements = logged(trainer, METRIC)
    assert len(agreements) == 2
    assert max(agreements) < 1e-5
    probes = [body for body in engine.requests if "seed" in body]
    assert [(len(body["prompt"]), body["max_tokens"]) for body in probes] == [(8, 16)] * 2

    engine.start()
    unchecked = ours(served.model, tmp_path, strategies=strategies, max_steps=2, **served.settings)
    assert logged(unchecked, METRIC) == []
    assert max_difference(trainer, unchecked) == 0.0  # a probe has a seed of its own


def stops(trainer: Any) -> None:
    """The sync is refused, and the trainer is as it was."""
    before = [parameter.clone() for parameter in trainer.model.parameters()]
    engine = trainer.vllm_generation
    settings = engine.temperature, engine.max_completion_length, engine.generation_kwargs, trainer.model.training
    with pytest.raises(FaultError) as stopped:
        trainer.vllm_generation.sync_weights()
    assert stopped.value.code == "engine-disagreement"
    assert all(map(torch.equal, before, trainer.model.parameters()))
    after = engine.temperature, engine.max_completion_length, engine.generation_kwargs, trainer.model.training
    assert settings == after
    assert trainer._metrics["train"][METRIC][0] > BOUNDS[torch.float32]


def test_moved_weights_that_arrive_agree(moved, engine):
    moved.vllm_generation.sync_weights()
    assert moved._metrics["train"][METRIC][0] < 1e-5


@pytest.mark.parametrize("part", ["lm_head", "mlp", "embed_tokens"])
def test_weights_that_stay_behind_are_found(moved, engine, part: str):
    engine.stale = (part,)
    stops(moved)


def test_adapters_that_are_not_merged_are_found(served: Served, engine, tmp_path: Path, monkeypatch: Any):
    trainer = served.trainer(
        tmp_path, peft_config=LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False)
    )
    trainer.vllm_generation.sync_weights()
    assert trainer._metrics["train"].pop(METRIC)[0] < 1e-5
    for method in ("merge_adapter", "unmerge_adapter"):
        monkeypatch.setattr(PeftModel, method, lambda *_, **__: None, raising=False)
        monkeypatch.setattr(trainer.model.base_model, method, lambda *_, **__: None)
    stops(trainer)


def test_another_dtype_is_found_and_may_be_accepted(served: Served, moved, engine, tmp_path: Path):
    engine.start(torch.bfloat16)
    stops(moved)
    accepted = served.trainer(tmp_path, {"agreement_bound": 0.5})
    accepted.vllm_generation.sync_weights()
    assert 1e-3 < accepted._metrics["train"][METRIC][0] < 0.1


def test_another_temperature_is_found(served: Served, moved, engine, tmp_path: Path):
    moved.vllm_generation.generation_kwargs = {"temperature": 1.3}
    stops(moved)
    moved.vllm_generation.generation_kwargs = {}
    engine.raw_logprobs = True
    stops(served.trainer(tmp_path, temperature=0.7))


SCRIPT = """
import pytest
from tests.trainer.step.engine.file_client import use_file_client
from evenkeel.trainer.step.guards import FaultError

use_file_client(pytest.MonkeyPatch(), output)
settings |= dict(use_vllm=True, vllm_mode="server", vllm_server_base_url="ADDRESS", max_steps=2)
checked = {"agreement_bound": None, "skip_old_logps": True}
try:
    trainer = ours(model, output / "run", strategies=checked, **settings)
    told = [entry["vllm/agreement_max"] for entry in trainer.state.log_history if "vllm/agreement_max" in entry]
except FaultError as stopped:
    told = str(stopped)
(output / f"rank-{rank}.json").write_text(json.dumps(told))
"""


@pytest.mark.slow
def test_both_ranks_agree_or_stop_with_one_message(tiny_model: Path, tmp_path: Path):
    engine = TransformersServer(tiny_model)
    with engine.listening() as url:
        first, second = on_two_processes(SCRIPT.replace("ADDRESS", url), tiny_model, tmp_path)
        assert engine.num_updates == 2
        assert len(first) == 2
        assert max(first) < 1e-5
        assert first == second
        engine.start()
        engine.stale = ("", "lm_head")
        first, second = on_two_processes(SCRIPT.replace("ADDRESS", url), tiny_model, tmp_path)
    assert first == second
    assert "differ from the trainer's" in first
