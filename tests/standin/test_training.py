"""The trainer on the stand-in device: it runs, equals stock TRL, waits where the table says, resumes."""

import math
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, Qwen3ForCausalLM, TrainerCallback
from trl import GRPOTrainer

from evenkeel.trainer import RLVRTrainer
from tests.standin import device
from tests.standin.cases import CASES, POLICY, RESUMED, Case
from tests.standin.mutants import Mutant
from tests.standin.waits import MICROBATCH, Waits, counted, largest
from tests.tiny_model import tiny_config
from tests.trainer.training import max_difference, train

pytestmark = pytest.mark.standin

OUR_WAITS: dict[str, dict[str, float]] = {
    "optimizer step": {"loss.py:raise_first": 1},
    "planned cut": {"microbatches.py:_plan": 1, "microbatches.py:cut": 3, "shared_prompts.py:prompt_numbers": 1},
    "comparison of cuts": {
        "gradient_check.py:_gradient": 8,
        "gradient_check.py:difference": 1,
        "microbatches.py:_verified": 1,
        "ranks.py:any": 8,
    },
    "generation": {"generation.py:draw": 1, "generation.py:sample_running": 9},
    "rewards": {"judging.py:refuse_unusable": 3},
    "rollout batch": {
        "advantages.py:_gathered_verdicts": 2,
        "advantages.py:estimate": 1,
        "diagnostics.py:frequent_token_residual": 2,
        "exchangeable.py:_token_class_baseline": 4,
        "exchangeable.py:exchangeable_prefix_tree": 1,
        "loss.py:start_rollout": 1,
        "metrics.py:rollout_metrics": 1,
        "microbatches.py:_plan": 1,
        "microbatches.py:scoring_cut": 2,
        "prompts.py:_add_round": 4.5,
        "prompts.py:observe": 1,
        "ranks.py:any": 4,
        "results.py:checked_advantages": 2,
        "revisions.py:_columns": 4,
        "revisions.py:_jobs": 2,
        "revisions.py:_log": 2,
        "revisions.py:references": 2,
        "rollout.py:group_labels": 1,
        "signals.py:estimator_signals": 1,
        "signals.py:weighted_sum": 2.5,
    },
    "log line": {"metrics.py:read": 1},
}
"""Phase → place → how often ours waits for the device at most, each time it is entered; none in a micro-batch."""


@cache
def measured(name: str) -> tuple[GRPOTrainer, Waits]:
    """The case, trained once for all tests that look at it."""
    with TemporaryDirectory() as folder, counted(device.install()) as waits:
        return CASES[name].run(Path(folder)), waits


@pytest.mark.parametrize("name", CASES)
def test_it_trains_on_the_device(name: str):
    trainer, _ = measured(name)
    assert {parameter.device.type for parameter in trainer.model.parameters()} == {device.NAME}
    norms = [line["grad_norm"] for line in trainer.state.log_history if "grad_norm" in line]
    assert norms
    assert all(map(math.isfinite, norms))
    assert max(norms) > 0


def test_the_default_is_stock_trl_bit_for_bit():
    (stock, _), (ours, _) = measured("stock"), measured("default")
    assert max_difference(stock, ours) == 0
    logged = [[line["loss"] for line in each.state.log_history if "loss" in line] for each in (stock, ours)]
    assert logged[0] == logged[1]


@pytest.mark.parametrize("name", CASES)
def test_ours_waits_only_where_the_table_says(name: str):
    _, waits = measured(name)
    more = {
        key: count
        for key, count in waits.per_visit(ours=True).items()
        if count > OUR_WAITS.get(key[0], {}).get(key[1], 0)
    }
    assert more == {}, "(phase, place): waits each time; `python -m tests.standin waits` prints the whole table"


def test_the_table_of_waits_names_none_that_is_gone():
    found = largest({name: measured(name)[1] for name in CASES}, ours=True)
    assert {(phase, place) for phase, places in OUR_WAITS.items() for place in places} - found.keys() == set()


def test_a_wait_in_a_microbatch_is_seen(tmp_path: Path):
    planted = Mutant(
        "evenkeel.trainer.step.loss:Loss.finish", "if is_last:", "if is_last and loss.item() < 1e9:", "default"
    )
    with planted.applied(), counted(device.install()) as waits:
        CASES["default"].run(tmp_path, max_steps=1)
    assert waits.per_visit(ours=True)[MICROBATCH, "loss.py:finish"] == 1


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
