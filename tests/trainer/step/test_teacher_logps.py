"""`teacher_logps`, `teacher_contrast`: the policy's own scores of its tokens behind answers, when it writes them."""

from pathlib import Path
from typing import Any

import pytest
import torch

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.algorithms.teachers import contrasted_siblings
from tests.trainer.training import CUT_IN_TWO, PROMPTS, made, max_difference, shown, train

ROWS = [{**row, "reference": str(number)} for number, row in enumerate(PROMPTS)]
TEACHER = {"template": "{reference} {prompt} {reference}"}
TEMPERATURE = 0.7


@torch.no_grad()
def logps_after(trainer: Any, text: str, ids: torch.Tensor) -> torch.Tensor:
    """log π of the tokens ``ids`` as an answer to ``text``."""
    prompt = trainer._tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], add_generation_prompt=True, return_dict=True
    )["input_ids"]
    logits = trainer.model(torch.tensor([prompt + ids.tolist()])).logits[0, len(prompt) - 1 : -1] / TEMPERATURE
    return logits.log_softmax(-1).gather(1, ids[:, None])[:, 0]


@pytest.mark.parametrize(
    ("speed", "settings"),
    [({}, {}), CUT_IN_TWO, ({"staleness": 2}, {"max_steps": 5})],
    ids=["on-policy", "planned", "written two batches ahead"],
)
def test_it_is_the_policy_that_writes_behind_the_gold_answer(
    tiny_model: Path, tmp_path: Path, speed: dict[str, Any], settings: dict[str, Any]
):
    handed, written = list[torch.Tensor](), list[torch.Tensor]()

    def see(rollout: Any, signals: Any) -> None:
        teacher, mask = signals["teacher_logps"], signals["mask"]
        own = torch.zeros_like(teacher)
        for row, (asked, ids) in enumerate(zip(rollout.rows, rollout.batch["completion_ids"], strict=True)):
            text = f"{asked['reference']} {asked['prompt'][0]['content']} {asked['reference']}"
            own[row] = logps_after(trainer, text, ids)
        torch.testing.assert_close(teacher * mask, own * mask, rtol=1e-4, atol=1e-5)
        assert (teacher - signals["old_logps"])[mask.bool()].abs().mean() > 1e-3  # the answer makes a difference
        written.append((teacher * mask).sum(1).sort().values)

    def weight(teacher_logps, mask, step):
        handed.append((teacher_logps * mask).sum(1))
        return torch.ones_like(teacher_logps)

    strategies = {"advantage": {"name": "mix", "of": {"grpo": 0.5, "sdpo": 0.5}}, "token_weight": weight}
    strategies |= {"teacher": TEACHER, **speed}
    settings = {"max_steps": 2, "learning_rate": 5e-2, **settings}
    given = {"strategies": strategies, "rows": ROWS, "temperature": TEMPERATURE, **settings}
    trainer = shown(made(RLVRTrainer, tiny_model, tmp_path, **given), see)
    trainer.train()
    assert written
    if len(handed[-1]) == len(written[0]):  # a batch is one micro-batch, in another order of rows
        for one, weighed in zip(written, handed[-len(written) :], strict=True):
            torch.testing.assert_close(weighed.sort().values, one)


def digits_with_verdicts(completions: list[Any], log_extra: Any, **_: Any) -> list[float]:
    """Right where the second character comes before `n`, so that groups have siblings of both kinds."""
    right = [each[0]["content"][1:2] < "n" for each in completions]
    log_extra("correct", right)
    return [float(each) for each in right]


@pytest.mark.parametrize(("speed", "cut"), [({}, {}), CUT_IN_TWO], ids=["as TRL cuts", "planned"])
def test_contrast_is_of_the_policy_behind_right_and_wrong_siblings(
    tiny_model: Path, tmp_path: Path, speed: dict[str, Any], cut: dict[str, Any]
):
    """It is held against one pass for each sibling, row by row."""
    contrasts: list[torch.Tensor] = []

    def see(rollout: Any, signals: Any) -> None:
        found, mask = rollout.batch["teacher_contrast"], signals["mask"]
        texts = trainer.processing_class.batch_decode(rollout.batch["completion_ids"], skip_special_tokens=True)
        seed = rollout.position.seed(trainer.args.seed)
        for row, siblings in enumerate(contrasted_siblings(signals["correct"], 4, 2, seed).tolist()):
            answers = [texts[each] for each in siblings if each >= 0]
            asked, ids = rollout.rows[row]["prompt"][0]["content"], rollout.batch["completion_ids"][row]
            right, *wrong = [logps_after(trainer, f"{each} {asked}", ids) for each in answers] or [None]
            own = torch.zeros_like(found[row])
            if right is not None:
                own = right - torch.stack(wrong).exp().mean(0).log()
            torch.testing.assert_close(found[row] * mask[row], own * mask[row], rtol=1e-3, atol=1e-5)
        contrasts.append((found * mask).abs().sum(1))

    strategies = {"token_weight": "rlcsd", **speed}
    strategies["teacher"] = {"sibling_template": "{reference} {prompt}", "wrong_siblings": 2}
    settings = {"max_steps": 2, "learning_rate": 5e-2, "temperature": TEMPERATURE, **cut}
    settings["reward"] = digits_with_verdicts
    trainer = shown(made(RLVRTrainer, tiny_model, tmp_path, strategies=strategies, **settings), see)
    trainer.train()
    assert any((each > 0).any() for each in contrasts)
    plain = train(RLVRTrainer, tiny_model, tmp_path / "plain", **settings)
    assert max_difference(trainer, plain) > 0
