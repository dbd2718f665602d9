"""Training through vLLM's routes, and that an engine with another policy is found out: each fault, its diagnosis."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel

from evenkeel.trainer.step.engine_check import EngineDisagreementError
from evenkeel.trainer.step.engine_diagnosis import BOUNDS
from tests.trainer.step.engine.conftest import Served
from tests.trainer.step.engine.transformers_server import TransformersServer
from tests.trainer.training import max_difference, ours

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


def logged(trainer: Any, name: str) -> list[float]:
    return [entry[name] for entry in trainer.state.log_history if name in entry]


def test_training_on_a_servers_rollouts_certifies_every_sync(served: Served, engine, tmp_path: Path):
    strategies = {"advantage": "exchangeable", "token_weight": "adv_reweight", "check_agreement_every": 1}
    trainer = ours(served.model, tmp_path, strategies=strategies, max_steps=2, **served.settings)
    assert engine.num_updates == 2
    agreements = logged(trainer, METRIC)
    assert len(agreements) == 2
    assert max(agreements) < 1e-5
    probes = [body for body in engine.requests if "seed" in body]
    assert [(len(body["prompt"]), body["max_tokens"]) for body in probes] == [(8, 16)] * 2

    engine.start()
    seldom = {**strategies, "check_agreement_every": 2}
    other = ours(served.model, tmp_path, strategies=seldom, max_steps=2, **served.settings)
    assert len(logged(other, METRIC)) == 1
    assert max_difference(trainer, other) == 0.0  # a probe has a seed of its own


@pytest.mark.slow
def test_a_resumed_run_goes_on_counting_syncs(served: Served, engine, tmp_path: Path):
    """Every second of five: those of steps 0, 2 and 4. The engine of a resumed run is new: its first is checked too."""
    every_second = {"check_agreement_every": 2}
    common = {**served.settings, "save_strategy": "steps", "save_steps": 3, "max_steps": 5}
    whole = ours(served.model, tmp_path, strategies=every_second, **common)

    def lines(trainer: Any) -> list[int]:
        return [entry["step"] for entry in trainer.state.log_history if METRIC in entry]

    assert lines(whole) == [1, 3, 5]
    engine.start()
    engine.requests.clear()
    checkpoint = str(tmp_path / "checkpoint-3")
    resumed = ours(served.model, tmp_path, strategies=every_second, resume_from_checkpoint=checkpoint, **common)
    assert lines(resumed) == [1, 3, 5]
    assert [("seed" in body) for body in engine.requests] == [True, False, True, False]
    assert resumed.parts.checkpoint.counts == whole.parts.checkpoint.counts


def test_an_evaluation_at_the_checkpoint_is_synced_again_and_not_counted_twice(served: Served, engine, tmp_path: Path):
    common = {**served.settings, "max_steps": 4}
    whole = served.trainer(tmp_path, {"check_agreement_every": 2}, **common)
    for whole.state.global_step in range(3):  # at the end an evaluation, at whose step the checkpoint is written
        whole.vllm_generation.sync_weights()
    resumed = served.trainer(tmp_path, {"check_agreement_every": 2}, **common)
    resumed.parts.checkpoint.counts.update(whole.parts.checkpoint.counts)
    resumed.state.global_step = 2
    resumed.vllm_generation.sync_weights()
    assert resumed.parts.checkpoint.counts == whole.parts.checkpoint.counts
    assert METRIC not in resumed._metrics["train"]
    for trainer in (whole, resumed):
        trainer._metrics["train"].clear()
        for trainer.state.global_step in (3, 4):
            trainer.vllm_generation.sync_weights()
            assert (METRIC in trainer._metrics["train"]) == (trainer.state.global_step == 4)


def stops(trainer: Any, *words: str) -> None:
    """The sync is refused, the message holds the words, and the trainer is as it was."""
    before = [parameter.clone() for parameter in trainer.model.parameters()]
    engine = trainer.vllm_generation
    settings = engine.temperature, engine.max_completion_length, engine.generation_kwargs, trainer.model.training
    with pytest.raises(EngineDisagreementError) as stopped:
        trainer.vllm_generation.sync_weights()
    for word in words:
        assert word in str(stopped.value)
    assert all(map(torch.equal, before, trainer.model.parameters()))
    after = engine.temperature, engine.max_completion_length, engine.generation_kwargs, trainer.model.training
    assert settings == after
    assert trainer._metrics["train"][METRIC][0] > BOUNDS[torch.float32]


def test_moved_weights_that_arrive_agree(moved, engine):
    moved.vllm_generation.sync_weights()
    assert moved._metrics["train"][METRIC][0] < 1e-5


def test_a_tied_head_that_is_not_synced_is_found(moved, engine):
    engine.stale = ("lm_head",)
    stops(moved, "The lm_head (tied to the embeddings): with the weights it started from", "tie_word_embeddings: false")


@pytest.mark.parametrize(
    ("part", "group"),
    [("mlp", "mlp"), ("self_attn.q_proj", "attention"), ("norm", "norms"), ("embed_tokens", "embeddings")],
)
def test_weights_that_stay_behind_are_named_by_their_group(moved, engine, part: str, group: str):
    engine.stale = (part,)
    if part == "self_attn.q_proj":
        engine.stale = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "q_norm")
    stops(moved, f"Parameters of the group {group}: ")


def test_weights_of_nobody_are_found_without_an_explanation(moved, engine):
    with torch.no_grad():
        engine.model.model.layers[0].mlp.up_proj.weight.mul_(3.0)
    engine.stale = ("layers.0.mlp.up_proj",)
    stops(moved, "Nothing that was tried explains it (temperature ")


def test_adapters_that_are_not_merged_are_found(served: Served, engine, tmp_path: Path, monkeypatch: Any):
    trainer = served.trainer(
        tmp_path, peft_config=LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False)
    )
    trainer.vllm_generation.sync_weights()
    assert trainer._metrics["train"].pop(METRIC)[0] < 1e-5
    for method in ("merge_adapter", "unmerge_adapter"):
        monkeypatch.setattr(PeftModel, method, lambda *_, **__: None, raising=False)
        monkeypatch.setattr(trainer.model.base_model, method, lambda *_, **__: None)
    stops(trainer, "the adapters were not merged")


def test_another_dtype_is_found(served: Served, moved, engine, tmp_path: Path):
    engine.start(torch.bfloat16)
    stops(moved, "Dtype: vLLM computes in bfloat16", "vllm serve --dtype float32", "vllm.agreement_bound: 0.5")
    accepted = served.trainer(tmp_path, {"agreement_bound": 0.5})
    accepted.vllm_generation.sync_weights()
    assert 1e-3 < accepted._metrics["train"][METRIC][0] < 0.1


def test_another_temperature_is_found(served: Served, moved, engine, tmp_path: Path):
    moved.vllm_generation.generation_kwargs = {"temperature": 1.3}
    stops(moved, "Temperature: at 1.3 in place of 1 ", "leave temperature out of trl.generation_kwargs")
    moved.vllm_generation.generation_kwargs = {}
    engine.raw_logprobs = True
    cooler = served.trainer(tmp_path, temperature=0.7)
    stops(cooler, "Temperature: at 1 in place of 0.7 ", "--logprobs-mode processed_logprobs")
