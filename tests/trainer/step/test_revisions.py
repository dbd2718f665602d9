"""The second generation through a real trainer: what is asked, scored, credited, counted, and what is left alone."""

from pathlib import Path
from typing import Any

import pytest
import torch

from evenkeel.rewards.registry import PartError
from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.algorithms.revisions import edit_mask, references
from evenkeel.trainer.lab.gradients.contributions import Recipe, batch_advantages
from evenkeel.trainer.lab.gradients.replay import replayed
from evenkeel.trainer.lab.gradients.strategies import named_strategy
from evenkeel.trainer.lab.rollouts.tokens import padded
from tests.trainer.training import made, max_difference, moved, shown, train

TEMPLATE = "{prompt} | {answer} | {reference}"
STRATEGIES = {"advantage": {"name": "ibpo", "lam": 0.5}, "revision": {"references": 2, "template": TEMPLATE}}


def is_right(completion: Any) -> bool | None:
    """A digit among the first three words; nobody can judge an answer that begins with a."""
    words = completion[0]["content"].split()
    return None if words[:1] == ["a"] else any(word.isdigit() for word in words[:3])


def early_digit(completions: list[Any], log_extra: Any, log_metric: Any, **_: Any) -> list[float | None]:
    correct = [is_right(completion) for completion in completions]
    log_extra("correct", correct)
    log_extra("words", [len(completion[0]["content"].split()) for completion in completions])
    for value in correct:
        log_metric("scored", float(value is not None))
    return [None if value is None else float(value) for value in correct]


class Recording(RLVRTrainer):
    """Keeps what was asked and answered in each generation."""

    def _generate(self, prompts: list[Any]) -> Any:
        result = super()._generate(prompts)
        asked = [prompt[-1]["content"] for prompt in prompts]
        vars(self).setdefault("generations", []).append(
            {"asked": asked, "ids": result[1], "answers": result[3], "n": self.num_generations}
        )
        return result


def run(model: Path, folder: Path, resume_from_checkpoint: str | None = None, **settings: Any) -> Any:
    """Trained; ``seen`` holds the columns that the estimator saw."""
    trainer = made(Recording, model, folder, reward=early_digit, strategies=STRATEGIES, **settings)
    names, trainer.seen, trainer.recorded = ("correct", "repair", "edited"), [], []
    trainer.parts.recorder.sink = lambda _, columns: trainer.recorded.append(columns)
    shown(trainer, lambda _, signals: trainer.seen.append({name: signals[name] for name in names}))
    trainer.train(resume_from_checkpoint=resume_from_checkpoint)
    return trainer


def test_wrong_answers_are_revised_beside_their_siblings_and_credited_where_a_right_revision_edits(
    tiny_model, tmp_path: Path
):
    trainer = run(tiny_model, tmp_path, max_steps=4, per_device_train_batch_size=16)
    assert moved(trainer, tiny_model) > 1e-3
    generations, repaired_rows = iter(trainer.generations), 0
    for step, seen in enumerate(trainer.seen):
        rollout = next(generations)
        assert rollout["n"] == 4
        texts = [answer[0]["content"] for answer in rollout["answers"]]
        table = references(seen["correct"], 4, 2, 1_000_003 + step).tolist()  # the run's seed is 1
        jobs = [(row, reference) for row, siblings in enumerate(table) for reference in siblings if reference >= 0]
        answers, revised = [], []
        for first in range(0, len(jobs), 16):  # in batches of the rollout's size
            made = next(generations)
            assert made["n"] == 1
            answers += made["answers"]
            revised += made["ids"]
            expected = [f"{rollout['asked'][i]} | {texts[i]} | {texts[j]}" for i, j in jobs[first : first + 16]]
            assert made["asked"] == expected
        for row in range(16):
            mine = [index for index, job in enumerate(jobs) if job[0] == row]
            verdicts = [is_right(answers[index]) for index in mine]
            scored = [verdict for verdict in verdicts if verdict is not None]
            assert seen["repair"][row].item() == (sum(scored) / len(scored) if scored else 0)
            ids = rollout["ids"][row]
            right = [revised[index] for index, verdict in zip(mine, verdicts, strict=True) if verdict]
            edits = [edit_mask(ids, revision).tolist() for revision in right] or [[True] * len(ids)]
            assert seen["edited"][row].tolist()[: len(ids)] in edits
            repaired_rows += bool(right)
    assert next(generations, None) is None
    assert repaired_rows > 3


def test_recorded_revisions_replay_the_advantages_that_were_trained(model: Any, tiny_model: Path, tmp_path: Path):
    recipe = Recipe(4, 1.0, {"early_digit": 1.0}, 2, "dapo", 8)
    trainer = run(tiny_model, tmp_path, max_steps=2)
    for columns in trainer.recorded:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        batch = replayed(rows, recipe, model)
        trained = padded(columns["advantages"])
        assert (trained == 0).any(1).any()
        again = batch_advantages(trainer.parts.advantages.strategies, batch, recipe)
        torch.testing.assert_close(again * batch.mask, trained * batch.mask)
    for row in rows:
        row["others"] = None
    with pytest.raises(PartError, match="asks for repair and edited, which runs with"):
        batch_advantages(named_strategy("ibpo").parts, replayed(rows, recipe, model), recipe)


def test_what_is_logged_of_the_rollout_is_not_mixed_with_revisions(tiny_model, tmp_path: Path):
    ours = run(tiny_model, tmp_path / "ibpo", max_steps=1)
    plain = train(RLVRTrainer, tiny_model, tmp_path / "grpo", reward=early_digit, max_steps=1)
    first, second = ours.state.log_history[0], plain.state.log_history[0]
    made = ours.generations[1:]
    tokens = sum(len(ids) for generation in made for ids in generation["ids"])
    assert first["revisions/tokens"] == tokens > 0
    assert first["num_tokens"] > second["num_tokens"] + tokens  # TRL's count of all tokens, prompts too
    correct = ours.seen[0]["correct"]
    revised = (correct == 0).view(2, 4) & (correct.view(2, 4) == 1).any(1)[:, None]
    assert first["revisions/frac_revised"] == revised.float().mean()
    rollout = ("completions/", "rewards/", "reward", "scored", "groups/")
    same = [name for name in second if name.startswith(rollout)]
    assert len(same) > 8
    assert {name: first[name] for name in same} == {name: second[name] for name in same}
    assert list(ours._logs["extra"]["words"]) == list(plain._logs["extra"]["words"])
    assert not ours._pending_extra_logs
    assert not ours._pending_metrics
    assert ours.num_generations == 4


def test_without_lambda_a_run_is_grpos_bit_for_bit(tiny_model, tmp_path: Path):
    strategies = {**STRATEGIES, "advantage": {"name": "ibpo", "lam": 0.0}}
    settings: dict[str, Any] = {"reward": early_digit, "max_steps": 3}
    shaped = train(RLVRTrainer, tiny_model, tmp_path / "ibpo", strategies=strategies, **settings)
    plain = train(RLVRTrainer, tiny_model, tmp_path / "grpo", **settings)
    assert max_difference(shaped, plain) == 0.0
    assert moved(plain, tiny_model) > 1e-3


def test_a_column_of_a_reward_function_with_a_revisions_name_is_refused(tiny_model, tmp_path: Path):
    def logs_repair(completions: list[Any], log_extra: Any, **keywords: Any) -> list[float | None]:
        log_extra("repair", [0.5] * len(completions))
        return early_digit(completions, log_extra, **keywords)

    with pytest.raises(ValueError, match="repair"):
        train(RLVRTrainer, tiny_model, tmp_path, reward=logs_repair, strategies=STRATEGIES)


@pytest.mark.slow
def test_a_resumed_run_draws_the_references_and_revisions_of_an_unbroken_one(tiny_model, tmp_path: Path):
    saving = {"save_strategy": "steps", "save_steps": 2, "max_steps": 4}
    unbroken = run(tiny_model, tmp_path, **saving)
    resumed = run(tiny_model, tmp_path, resume_from_checkpoint=str(tmp_path / "checkpoint-2"), **saving)
    assert [made["asked"] for made in resumed.generations] == [
        made["asked"] for made in unbroken.generations[-len(resumed.generations) :]
    ]
    assert max_difference(unbroken, resumed) == 0.0
