"""The trainer on the stand-in device: it runs, equals stock TRL, resumes, and takes no more memory."""

import math
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, Qwen3ForCausalLM, TrainerCallback
from trl import GRPOTrainer

from evenkeel.trainer import RLVRTrainer
from tests.paths import ROOT
from tests.standin import device
from tests.standin.cases import CASES, POLICY, RESUMED, Case
from tests.tiny_model import tiny_config
from tests.trainer.training import max_difference, train

pytestmark = pytest.mark.standin

OURS = str(ROOT / "trainer")
TORCH = str(Path(torch.__file__).parent)


class Watched(RLVRTrainer):
    """Notes where ours waits for the device in a micro-batch, outside of rollout batches and cuts."""

    watching = False

    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__(*positional, **keywords)
        self.waits: list[str] = []
        device.install().on_host_wait(self.note)

    def note(self, kind: str) -> None:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(TORCH):
            frame = frame.f_back
        if self.watching and frame.f_code.co_filename.startswith(OURS):
            self.waits.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}")

    def training_step(self, *positional: Any, **keywords: Any) -> Any:
        self.watching = True
        loss = super().training_step(*positional, **keywords)
        self.watching = False
        return loss

    def _prepare_inputs(self, *positional: Any, **keywords: Any) -> Any:
        self.watching = False
        inputs = super()._prepare_inputs(*positional, **keywords)
        self.watching = True
        return inputs


@cache
def trained(name: str) -> GRPOTrainer:
    """The case, trained once for all tests that look at it."""
    with TemporaryDirectory() as folder:
        trainer = CASES[name].run(Path(folder), Watched if CASES[name].trainer is RLVRTrainer else None)
    device.install().on_host_wait(None)
    return trainer


@pytest.mark.parametrize("name", CASES)
def test_it_trains_on_the_device(name: str):
    trainer = trained(name)
    assert {parameter.device.type for parameter in trainer.model.parameters()} == {device.NAME}
    norms = [line["grad_norm"] for line in trainer.state.log_history if "grad_norm" in line]
    assert norms
    assert all(map(math.isfinite, norms))
    assert max(norms) > 0


@pytest.mark.parametrize("name", [name for name in CASES if name != "stock"])
def test_ours_waits_in_no_micro_batch(name: str):
    """But for the checks of an optimizer step's weights and coefficients, which are read once, at its end."""
    trainer = trained(name)
    assert trainer.waits in ([], ["loss.py:finish"] * trainer.state.global_step)


def test_waits_are_seen():
    """Without which the test above would prove nothing."""
    assert trained("clip_cov").waits


def test_the_default_is_stock_trl_bit_for_bit():
    stock, ours = trained("stock"), trained("default")
    assert max_difference(stock, ours) == 0
    logged = [[line["loss"] for line in each.state.log_history if "loss" in line] for each in (stock, ours)]
    assert logged[0] == logged[1]


@pytest.mark.parametrize(
    "case",
    [
        Case(settings={"num_iterations": 2}),
        Case({"microbatches": "planned", "update_schedule": "lopti"}, {"loss_type": "dapo"}),
        Case({"generation": "compact", "common_random_numbers": True}),
    ],
    ids=["default", "planned lopti", "common random numbers"],
)
def test_a_resumed_run_equals_one_that_was_never_stopped(case: Case, tmp_path: Path):
    settings = {"save_strategy": "steps", "save_steps": 2, "max_steps": 4}
    whole = case.run(tmp_path, **settings)
    resumed = case.run(tmp_path, **settings, resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert resumed.state.global_step == 4
    assert max_difference(whole, resumed) == 0


def test_a_watched_run_resumes_between_two_log_lines(tmp_path: Path):
    resumed = RESUMED["resumed between log lines"].run(tmp_path)
    (line,) = (line for line in resumed.state.log_history if "loss" in line)
    assert (line["step"], resumed.state.global_step) == (2, 2)
    assert sum(line[f"token_prob/frac_q{quarter}"] for quarter in (1, 2, 3, 4)) == pytest.approx(1)


@pytest.fixture(scope="module")
def large_vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy whose logits, 32,768 a token, are most of the memory that training needs."""
    folder = tmp_path_factory.mktemp("large_vocabulary")
    torch.manual_seed(0)
    config = tiny_config(vocab_size=2**15, num_hidden_layers=1)
    Qwen3ForCausalLM(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(POLICY).save_pretrained(folder)
    return folder


class FromHere(TrainerCallback):
    """The peak of training, not that of loading."""

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        device.install().reset_peak()


def every_second_right(completions: list[Any], **_: Any) -> list[float]:
    return [float(index % 2) for index in range(len(completions))]


def peak_megabytes(trainer: type[GRPOTrainer], model: Path, folder: Path, case: Case) -> float:
    settings = {
        "max_steps": 1,
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "max_completion_length": 24,
        "generation_kwargs": {"min_new_tokens": 24},
    }
    train(
        trainer,
        model,
        folder,
        reward=every_second_right,
        strategies=case.strategies,
        callbacks=[FromHere()],
        **{**settings, **case.settings},
    )
    return device.install().allocated_and_peak()[1] / 2**20


@pytest.mark.parametrize("settings", [{}, {"beta": 0.04}, {"loss_type": "grpo"}], ids=["default", "reference", "grpo"])
def test_ours_needs_no_more_memory_than_stock(settings: dict[str, Any], large_vocabulary: Path, tmp_path: Path):
    strategies: dict[str, dict[str, Any]] = {
        "default": {},
        "exchangeable, reweighted": CASES["exchangeable, reweighted"].strategies,
        "top_entropy": {"token_weight": "top_entropy"},
        "planned": {"microbatches": "planned", "verify_steps": 0},
    }
    if settings == {"loss_type": "grpo"}:
        strategies = {name: CASES[name].strategies for name in ("tokens by class", "entropies")}
    stock = peak_megabytes(GRPOTrainer, large_vocabulary, tmp_path, Case(settings=settings))
    ours = {
        name: peak_megabytes(RLVRTrainer, large_vocabulary, tmp_path, Case(each, settings))
        for name, each in strategies.items()
    }
    assert {name: peak / stock for name, peak in ours.items() if peak > 1.005 * stock} == {}
