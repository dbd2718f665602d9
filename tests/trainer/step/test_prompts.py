"""Prompts that a sampler chooses, in real training steps: whose rows are trained, what they cost, exact resume."""

from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.run.experiment import Experiment
from tests.paths import ROOT
from tests.trainer.training import begun, digit_reward, made

NAMES = "abcdefghi"
ROWS = Dataset.from_list([{"prompt": f"user {a} {b} assistant", "text": a + b} for a in NAMES for b in NAMES[:4]])
ROWS = ROWS.add_column("kind", [1] * 16 + [2] * 20)


def half_dead(completions: list[str], text: list[str], log_extra: Any, **_: Any) -> list[float]:
    """Equal rewards for prompts that begin with a, c, e, g or i; the others alternate."""
    rewards = [0.0 if t[0] in "acegi" else float(row % 2) for row, t in enumerate(text)]
    log_extra("correct", [bool(reward) for reward in rewards])
    return rewards


def trainer_of(
    model: Path,
    folder: Path,
    sampler: Any,
    reward: Any = half_dead,
    trainer_class: type[RLVRTrainer] = RLVRTrainer,
    **settings: Any,
) -> RLVRTrainer:
    settings = {"per_device_train_batch_size": 16, "max_completion_length": 6, "seed": 3, "rows": ROWS, **settings}
    given = {"prompt_sampler": sampler}
    trainer: RLVRTrainer = made(trainer_class, model, folder, reward=reward, strategies=given, **settings)
    return trainer


def rolled_out(trainer: RLVRTrainer) -> dict[str, Any]:
    begun(trainer)
    torch.manual_seed(0)
    return trainer._generate_and_score_completions([ROWS[0]] * 16)


def test_dynamic_sampling_fills_the_batch_with_live_groups(tiny_model, tmp_path: Path):
    trainer = trainer_of(tiny_model, tmp_path, "dynamic")
    batch = rolled_out(trainer)
    texts = [ROWS[prompt]["text"] for prompt in trainer.parts.prompts.chosen]
    assert len(texts) == 4
    assert not [text for text in texts if text[0] in "acegi"]
    assert (batch["advantages"] != 0).all()
    assert trainer._tokenizer.batch_decode(batch["prompt_ids"][::4], skip_special_tokens=True) == [
        ROWS[prompt]["prompt"] for prompt in trainer.parts.prompts.chosen
    ]
    metrics = trainer._metrics["train"]
    [rounds], [generated], [live] = (
        metrics[f"prompt_sampler/{name}"] for name in ("rounds", "generated_per_trained", "frac_live")
    )
    assert rounds > 1
    assert generated > 1
    assert live == pytest.approx(sum(metrics["prompt_sampler/reward"]) * 2)  # half of a live group is right
    assert metrics["reward"] == [0.5]
    lengths = int(batch["completion_mask"].sum())
    assert trainer.state.num_input_tokens_seen > lengths + int(batch["prompt_mask"].sum())  # what was left out too

    def hopeless(completions: list[str], **_: Any) -> list[float]:
        return [0.0] * len(completions)

    trainer = trainer_of(tiny_model, tmp_path, {"name": "dynamic", "max_rounds": 3}, hopeless)
    batch = rolled_out(trainer)
    assert len(batch["advantages"]) == 16
    assert not batch["advantages"].any()
    assert trainer._metrics["train"]["prompt_sampler/rounds"] == [3.0]
    assert trainer._metrics["train"]["prompt_sampler/generated_per_trained"] == [3.0]


def test_kept_completions_are_scored_once(tiny_model, tmp_path: Path):
    scored: list[str] = []

    def counted(completions: list[str], prompts: list[str], **_: Any) -> list[float]:
        scored.extend(map(str.__add__, prompts, completions))
        return digit_reward([[{"content": text}] for text in completions])

    trainer = trainer_of(tiny_model, tmp_path, "dynamic", counted, num_iterations=2)
    batch = rolled_out(trainer)
    rounds = trainer._metrics["train"]["prompt_sampler/generated_per_trained"][0]
    assert len(scored) == rounds * 16
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    with torch.no_grad():
        logps = trainer._get_per_token_logps_and_entropies(trainer.model, ids, mask, batch["completion_ids"].shape[1])
    torch.testing.assert_close(batch["old_per_token_logps"], logps[0])


def test_lengths_are_logged_of_what_is_trained_and_verifiers_of_all_that_was_scored(tiny_model, tmp_path: Path):
    def scored(completions: list[str], text: list[str], log_metric: Any, **columns: Any) -> list[float]:
        for each in text:
            log_metric("verifier/live", float(each[0] not in "acegi"))
        return half_dead(completions, text, **columns)

    class Noting(RLVRTrainer):
        """Notes what TRL logged of each round."""

        def _generate_and_reward(self, rows: Any) -> Any:
            answers = super()._generate_and_reward(rows)
            logged = self._metrics["train"].items()
            rounds.append({name: values[-1] for name, values in logged if name.startswith("completions/")})
            return answers

    rounds: list[dict[str, float]] = []
    settings = {"trainer_class": Noting, "max_completion_length": 12}
    trainer = trainer_of(tiny_model, tmp_path, "dynamic", scored, **settings)
    batch = rolled_out(trainer)
    metrics = trainer._metrics["train"]
    lengths = batch["completion_mask"].sum(1)
    last = batch["completion_ids"].gather(1, lengths[:, None] - 1)[:, 0]
    ends = [*trainer.eos_token_ids, trainer.processing_class.pad_token_id]  # TRL takes a padding token for one too
    ended = torch.isin(last, torch.tensor(ends))
    assert len(rounds) > 1
    assert {name: len(metrics[name]) for name in rounds[0]} == dict.fromkeys(rounds[0], 1)
    assert metrics["completions/mean_length"] == [pytest.approx(float(lengths.float().mean()))]
    assert metrics["completions/clipped_ratio"] == [pytest.approx(1 - float(ended.float().mean()))]
    assert 0 < metrics["completions/clipped_ratio"][0] < 1
    assert metrics["verifier/live"] == [pytest.approx(metrics["prompt_sampler/frac_live"][0])]
    assert metrics["verifier/live"][0] < 1


def test_a_sampler_learns_what_was_solved(tiny_model, tmp_path: Path):
    trainer = trainer_of(tiny_model, tmp_path, {"name": "difficulty", "newest": 1.0}, max_steps=3)
    trainer.train()
    rates = trainer.strategies.prompt_sampler.function.pass_rates
    assert len(rates) >= 4
    assert {ROWS[prompt]["text"][0] in "acegi": rate for prompt, rate in rates.items()} == {True: 0.0, False: 0.5}


PLAYED = [
    "algorithm.prompt_sampler=dynamic",
    "algorithm.prompts_per_rollout=2",
    "algorithm.sequences_per_update=8",
    "trl.num_generations=4",
    "trl.per_device_train_batch_size=8",
    "trl.max_steps=1",
    "trl.save_strategy=no",
    "evaluation.before=false",
    "logging.report_to=none",
]


def test_conversations_of_several_rounds_keep_their_masks_rewards_and_turns(tmp_path: Path):
    """In the corridor a row is paid if, and only if, its environment said that the door is open."""
    run_file = ROOT / "configs/environments/key_door_tiny_cpu.yaml"
    trainer = Experiment.of_file(run_file, [*PLAYED, f"output_dir={tmp_path}"]).trainer
    (kind,) = trainer.environment_factories.values()
    began, reset, batches = [], kind.reset, []

    def counted(self: Any, **row: Any) -> Any:
        began.append(row)
        return reset(self, **row)

    def noted(inputs: Any) -> Any:
        batches.append((scored(inputs), trainer.parts.rewards.per_function, trainer.parts.rewards.columns))
        return batches[-1][0]

    kind.reset, scored = counted, trainer._generate_and_score_completions
    trainer._generate_and_score_completions = noted
    trainer.train()
    kind.reset = reset
    logged = [line for line in trainer.state.log_history if "prompt_sampler/rounds" in line]
    assert max(line["prompt_sampler/rounds"] for line in logged) > 1
    generated = sum(line["prompt_sampler/generated_per_trained"] for line in logged)
    assert len(began) == pytest.approx(8 * generated)
    assert any((rewards == 1).any() for _, rewards, _ in batches)
    for batch, rewards, columns in batches:
        answers = [ids[mask == 0] for ids, mask in zip(batch["completion_ids"], batch["tool_mask"], strict=True)]
        told = ["the door is open" in text for text in trainer._tokenizer.batch_decode(answers)]
        assert told == (rewards[:, 0] == 1).tolist()
        starts = batch["tool_mask"].clone()
        starts[:, 1:] &= 1 - batch["tool_mask"][:, :-1]
        assert [len(keys) for keys in columns["state_keys"]] == (starts * batch["completion_mask"]).sum(1).tolist()


CLIMBING = {"name": "curriculum", "column": "kind", "levels": [1, 2], "up_at": 0.1}


@pytest.mark.parametrize("sampler", ["dynamic", "difficulty", CLIMBING], ids=str)
def test_an_interrupted_run_goes_on_with_the_same_prompts(tiny_model, tmp_path: Path, sampler: Any):
    settings = {"max_steps": 6, "save_strategy": "steps", "save_steps": 3, "learning_rate": 1e-3}
    whole = trainer_of(tiny_model, tmp_path / "whole", sampler, **settings)
    whole.train()
    again = trainer_of(tiny_model, tmp_path / "again", sampler, **settings)
    again.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-3"))
    assert again.parts.prompts.chosen == whole.parts.prompts.chosen
    for mine, theirs in zip(again.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)
