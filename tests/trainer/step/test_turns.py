"""Several turns through the whole trainer: what a tool inserted is not trained, turns are credited, prefixes cancel."""

import re
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from evenkeel.errors import Refusal
from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms.contract import ADVANTAGE, COEFFICIENT, PROMPT_SAMPLER, TOKEN_WEIGHT, UPDATE_SCHEDULE
from evenkeel.trainer.algorithms.registry import built_in
from evenkeel.trainer.step.rollout import loss_mask
from tests.trainer.step.test_environments import CALL, LAST, TARGET, Scripted, scripted
from tests.trainer.step.test_environments import tokenizer as tokenizer
from tests.trainer.step.without_torch import Guess

SCRIPTS = ([5, 3], [5, 4], [5, 4, 2], [5, 1])
"""What the rows of a group guess: the same first, which is answered alike, then different numbers; one is right."""
PAYS = {"right": 1.0, "lower": 0.25, "higher": 0.0}


GAME = Guess()
GAME.reset(TARGET)


def paying(completions: list[Any], log_extra: Any, **_: Any) -> list[float]:
    """Judges the last answer; logs what each answer paid, and which answers were known before each turn."""
    answers = [[message["content"] for message in messages if message["role"] == "tool"] for messages in completions]
    log_extra("turn_rewards", [[*map(PAYS.get, row), None] for row in answers])
    log_extra("state_keys", [[" ".join(row[:turn]) for turn in range(len(row) + 1)] for row in answers])
    log_extra("correct", [row[-1] == "right" for row in answers])
    return [float(row[-1] == "right") for row in answers]


class InTurns(Scripted):
    """Row i of a group says what `SCRIPTS`[i] says; `seen` holds each loss's mask, gradient of log π and prefixes."""

    def _generate_single_turn(self, prompt_ids: list[list[int]], *_: Any, **__: Any) -> Any:
        turn = len(re.findall("<tool_response>", self.processing_class.decode(prompt_ids[0])))
        if turn == 0:
            self.asked = list(range(len(prompt_ids)))
        scripts = [SCRIPTS[row % len(SCRIPTS)] for row in self.asked]
        texts = [CALL.format(script[turn]) if turn < len(script) else LAST for script in scripts]
        self.asked = [row for row, script in zip(self.asked, scripts, strict=True) if turn < len(script)]
        return [self.processing_class(text)["input_ids"] for text in texts], None

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        meter, mask = self.parts.loss.shared_prefixes, loss_mask(inputs)
        plain_watch = meter.watch

        def watch(logps: Tensor, groups: Tensor, prefix_lengths: Tensor) -> None:
            logps.register_hook(lambda gradient: self.seen.append((mask, gradient, prefix_lengths)))
            plain_watch(logps, groups, prefix_lengths)

        meter.watch = watch
        loss = super()._compute_loss(model, inputs)
        meter.watch = plain_watch
        return loss


def trained(tokenizer: PreTrainedTokenizerFast, folder: Path, **chosen: Any) -> InTurns:
    steps = 2 if "update_schedule" in chosen else 1
    trainer = scripted(tokenizer, folder, InTurns, steps, **{"tools": [GAME.guess], "reward_funcs": paying, **chosen})
    assert isinstance(trainer, InTurns)
    trainer.seen = []
    trainer.train()
    return trainer


def inserted_tokens_have_no_gradient(trainer: InTurns) -> None:
    assert len(trainer.seen) == trainer.args.max_steps
    for mask, gradient, _ in trainer.seen:
        assert (mask == 0).sum() > 100
        assert (gradient[mask == 0] == 0).all()
        assert gradient.isfinite().all()
    assert sum((gradient != 0).sum() for _, gradient, _ in trainer.seen) > 20


REFUSED = {"ibpo": "revision with tools", **dict.fromkeys(("sdpo", "rlsd", "rlcsd"), "with tools")}
"""Strategies that do not go with tools, and what is said of them."""

OPTIONS: dict[str, dict[str, Any]] = {
    "pass_at_k": {"k": 2},
    "gtpo_conflict": {"max_entropy": None},
    "curriculum": {"column": "prompt", "levels": [str([{"role": "user", "content": "Play."}])], "up_at": 0.5},
}
"""Options under which a group of four with one right answer, written by a policy of random weights, teaches."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in (ADVANTAGE, TOKEN_WEIGHT, COEFFICIENT, UPDATE_SCHEDULE, PROMPT_SAMPLER)
        for name in sorted(built_in(kind))
    ],
)
def test_every_strategy_trains_in_turns_or_is_refused(tokenizer, tmp_path: Path, kind: str, name: str):
    loss_type = "cispo" if kind == COEFFICIENT else "dapo"
    chosen = {kind: {"name": name, **OPTIONS.get(name, {})}, "loss_type": loss_type}
    chosen |= {"revision": {"references": 2}} if name == "ibpo" else {}
    if name in REFUSED:
        with pytest.raises(Refusal, match=REFUSED[name]):
            trained(tokenizer, tmp_path, **chosen)
    else:
        inserted_tokens_have_no_gradient(trained(tokenizer, tmp_path, **chosen))


@pytest.mark.parametrize(
    ("advantage", "loss_type", "left"),
    [
        ("exchangeable", "grpo", 0.0),
        ("exchangeable", "dapo", 0.0),
        ("exchangeable_prefix_tree", "dapo", 0.0),
        ("exchangeable_token_class", "dapo", 0.0),
        ("grpo", "dapo", 0.0),
        ("grpo", "grpo", 0.057),
    ],
)
def test_what_a_group_shares_cancels_behind_a_tools_answer_too(
    tokenizer, tmp_path: Path, advantage: str, loss_type: str, left: float
):
    trainer = trained(tokenizer, tmp_path, advantage=advantage, loss_type=loss_type)
    ((mask, gradient, (prefix, *_)),) = trainer.seen
    shared = CALL.format(5), CALL.format(4).partition("4")[0]  # the first call, and the second up to its number
    assert mask[:, :prefix].all(0).sum() == (gradient[:, :prefix] != 0).any(0).sum()
    assert mask[:, :prefix].all(0).sum() == sum(len(tokenizer(text)["input_ids"]) for text in shared)
    assert prefix > mask[:, :prefix].all(0).sum() + 20  # the tool's answer is among them
    (found,) = [log["cancellation/shared_prefix"] for log in trainer.state.log_history if "loss" in log]
    print(f"{advantage} under {loss_type}: {found:.1e}")  # noqa: T201 a README quotes it
    assert found == pytest.approx(left, abs=1e-3 if left else 1e-6)


@pytest.mark.parametrize(
    ("logged", "said"),
    [
        ({}, "asks for the column 'turn_rewards'.*Log one list, one entry for each turn, a row"),
        ({"turn_rewards": [0.0] * 4}, "row 0 has 3 turns, and a reward function logged 0.0"),
        ({"turn_rewards": [[0.0] * 9] * 4}, r"row 0 has 3 turns, and a reward function logged \[0.0, 0.0"),
    ],
    ids=["nothing", "numbers", "too many"],
)
def test_turns_that_nobody_paid_are_refused_at_the_first_batch(tokenizer, tmp_path: Path, logged: dict, said: str):
    def careless(completions: list[Any], log_extra: Any, **_: Any) -> list[float]:
        for name, values in logged.items():
            log_extra(name, values)
        return [0.0, 1.0] * (len(completions) // 2)

    with pytest.raises(PartError, match=said):
        trained(tokenizer, tmp_path, advantage="turn_grpo", reward_funcs=careless)
