"""The contract inside a real step: signals that strategies ask for, results that break it, state, whole groups."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from trl import GRPOTrainer

from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms.groups import finished, group_mean
from evenkeel.trainer.step.metrics import Means, SharedPrefixMeter
from tests.trainer.algorithms.test_trial import OfEarlierBatches
from tests.trainer.training import by_tokens, digit_reward, logged, max_difference, ours

SEEN: list[dict[str, Any]] = []
TWO_STEPS = {"per_device_train_batch_size": 4, "steps_per_generation": 4, "gradient_accumulation_steps": 2}


@pytest.fixture(autouse=True)
def nothing_seen():
    SEEN.clear()


def curious(rewards, group_size, old_logps, entropies, lengths, correct, step, max_steps):
    SEEN.append({"old_logps": old_logps, "entropies": entropies, "correct": correct, "at": (step, max_steps)})
    return finished(rewards - group_mean(rewards, group_size), rewards, group_size)


def scored_reward(completions: list[Any], log_extra: Any = None, **_: Any) -> list[float]:
    rewards = digit_reward(completions)
    log_extra("correct", [float(reward > 0) for reward in rewards])
    return rewards


class ForwardPasses:
    """How often a model was called, with and without gradient."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scored = self.trained = 0
        original = GRPOTrainer._get_per_token_logps_and_entropies

        def counted(trainer: Any, *positional: Any, **keywords: Any) -> Any:
            self.trained += torch.is_grad_enabled()
            self.scored += not torch.is_grad_enabled()
            return original(trainer, *positional, **keywords)

        monkeypatch.setattr(GRPOTrainer, "_get_per_token_logps_and_entropies", counted)


@pytest.mark.parametrize("settings", [{}, TWO_STEPS], ids=["on policy", "two steps"])
def test_an_estimator_gets_the_old_policys_scores_for_one_pass(tiny_model, tmp_path, monkeypatch, settings):
    counted = ForwardPasses(monkeypatch)
    ours(tiny_model, tmp_path, reward=scored_reward, strategies={"advantage": curious}, max_steps=1, **settings)
    assert counted.scored == 1
    tried = SEEN[-1]
    assert tried["at"] == (0, 1)
    assert tried["old_logps"].shape == tried["entropies"].shape
    assert (tried["old_logps"] < 0).any()
    assert (tried["entropies"] > 1).any()  # 24 words: ln 24 = 3.2
    assert set(tried["correct"].tolist()) <= {0.0, 1.0}


def test_what_nobody_asks_for_costs_nothing(tiny_model, tmp_path, monkeypatch):
    counted = ForwardPasses(monkeypatch)
    ours(tiny_model, tmp_path, max_steps=2)
    assert (counted.scored, counted.trained) == (0, 2)


def later_nan(probs: Tensor, step: int) -> Tensor:
    return torch.full_like(probs, torch.nan if step == 1 else 1.0)


def later_unscored(rewards: Tensor, group_size: int, step: int) -> Tensor:
    advantages = finished(rewards - group_mean(rewards, group_size), rewards, group_size)
    return advantages * torch.nan if step == 1 else advantages


def later_infinite(logps: Tensor, step: int) -> Tensor:
    return torch.full_like(logps, torch.inf if step == 1 else 1.0)


@pytest.mark.parametrize(
    ("kind", "part", "loss_type", "message"),
    [
        ("token_weight", later_nan, "dapo", r"token_weight 'later_nan' .* at optimizer step 1: nan at row 0"),
        ("advantage", later_unscored, "dapo", r"advantage 'later_unscored' .* step 1: response 0 with reward"),
        ("coefficient", later_infinite, "cispo", r"coefficient 'later_infinite' .* step 1: .*inf at row"),
    ],
)
def test_a_result_that_breaks_the_contract_stops_the_run_before_the_optimizer_moves(
    tiny_model, tmp_path, kind, part, loss_type, message
):
    settings = {"loss_type": loss_type, "save_strategy": "steps", "save_steps": 1, "epsilon_high": 5.0}
    with pytest.raises(PartError, match=message):
        ours(tiny_model, tmp_path, strategies={kind: part}, max_steps=3, **settings)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-1"]
    from safetensors.torch import load_file

    weights = load_file(next((tmp_path / "checkpoint-1").glob("*.safetensors")))
    assert all(bool(value.isfinite().all()) for value in weights.values())


def test_state_is_saved_and_resumed_exactly(tiny_model, tmp_path: Path):
    settings = {"max_steps": 6, "save_strategy": "steps", "save_steps": 3}
    settings |= {"strategies": {"advantage": OfEarlierBatches}}
    straight = ours(tiny_model, tmp_path / "straight", **settings)
    checkpoint = tmp_path / "straight" / "checkpoint-3"
    resumed = ours(tiny_model, tmp_path / "resumed", resume_from_checkpoint=str(checkpoint), **settings)
    assert max_difference(straight, resumed) == 0.0
    assert resumed.strategies.advantage.function.mean == straight.strategies.advantage.function.mean != 0.0


def test_columns_that_reward_functions_leave_reach_the_estimator(tiny_model, tmp_path: Path):
    def with_novelty(completions: list[Any], log_extra: Any = None, **_: Any) -> list[float]:
        log_extra("novelty", [index / 8 for index in range(len(completions))])
        log_extra("language", ["en"] * len(completions))
        return digit_reward(completions)

    def novel(rewards, group_size, novelty):
        SEEN.append({"novelty": novelty})
        return finished(rewards + novelty, rewards, group_size)

    def wordy(rewards, group_size, language):
        return finished(rewards + language, rewards, group_size)

    def missing(rewards, group_size, surprise):
        return finished(rewards + surprise, rewards, group_size)

    ours(tiny_model, tmp_path, reward=with_novelty, strategies={"advantage": novel}, max_steps=1)
    assert SEEN[-1]["novelty"].tolist() == [index / 8 for index in range(8)]
    with pytest.raises(PartError, match=r"asks for the column 'surprise'.*columns that were: novelty, language"):
        ours(tiny_model, tmp_path, reward=with_novelty, strategies={"advantage": missing}, max_steps=1)
    with pytest.raises(PartError, match=r"'language'.*holds 'en'"):
        ours(tiny_model, tmp_path, reward=with_novelty, strategies={"advantage": wordy}, max_steps=1)


KEY = "cancellation/shared_prefix"


@pytest.fixture
def sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every completion begins with the same three tokens, as templates make them do."""
    original = GRPOTrainer._generate

    def generate(trainer: Any, prompts: list[Any]) -> Any:
        prompt_ids, completion_ids, *rest = original(trainer, prompts)
        return prompt_ids, [[5, 6, 7, *ids[3:]] if len(ids) > 3 else [5, 6, 7, *ids] for ids in completion_ids], *rest

    monkeypatch.setattr(GRPOTrainer, "_generate", generate)


def test_shared_tokens_cancel_in_every_optimizer_step_as_trained(tiny_model, tmp_path: Path, sharing):
    settings = {"loss_type": "grpo", "reward": by_tokens, "per_device_train_batch_size": 4, "learning_rate": 1e-4}
    settings |= {"steps_per_generation": 8, "gradient_accumulation_steps": 2, "max_steps": 8}
    strategies = {"advantage": "exchangeable", "update_schedule": {"name": "lopti", "eta": 0.05}}
    kept = logged(ours(tiny_model, tmp_path / "kept", strategies=strategies, **settings), KEY)
    assert kept
    assert max(kept) <= 1e-6
    strategies["keep_groups"] = "off"
    scattered = logged(ours(tiny_model, tmp_path / "scattered", strategies=strategies, **settings), KEY)
    assert sum(scattered) / len(scattered) > 0.2


def test_the_ranks_sum_once_a_step_also_over_two_rollout_batches():
    meter, means, summed = SharedPrefixMeter(), Means(), []
    accelerator = SimpleNamespace(reduce=lambda values, _: summed.append(len(values)) or 2 * values)
    for groups, weights in ((1, [[1.0, 1.0, 5.0]] * 2), (2, [[3.0, 0.0], [0.0, 2.0]])):
        logps = torch.zeros(2, len(weights[0]), requires_grad=True)
        signs = torch.tensor([1.0, -1.0])[:, None]  # the group's responses push against one another
        meter.expect(groups, 2, torch.device("cpu"))
        meter.watch(logps, torch.arange(2) % groups, torch.tensor([2, 2]))
        (logps * torch.tensor(weights) * signs).sum().backward()
    meter.finish_step(accelerator, means)
    assert summed == [2 * 1 * 2 + 2 * 2 * 2]
    one_process = SimpleNamespace(reduce=lambda values, _: values)
    assert means.read(one_process) == {KEY: pytest.approx(2 / 4)}  # two positions cancel, two do not
    meter.finish_step(one_process, means)
    assert means.read(one_process) == {}, "what was summed is summed again"
