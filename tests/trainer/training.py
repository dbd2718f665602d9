"""One short real training run, with our trainer or TRL's, for the tests that compare final weights."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM
from trl import GRPOConfig, GRPOTrainer

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.step.options import Engine, Evaluation, Speed
from tests.paths import ROOT

ON_CPU = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False, "seed": 1, "disable_tqdm": True}
ON_CPU |= {"report_to": "none", "save_strategy": "no", "logging_steps": 1}
"""Arguments of a quiet training here."""
PROMPTS = [
    {"prompt": [{"role": "user", "content": text}]} for text in ("a b", "c d e", "f", "g h a", "b b", "i", "c", "d e")
]
CUT_IN_TWO = ({"microbatches": "planned"}, {"per_device_train_batch_size": 4, "steps_per_generation": 2})
"""Keywords of a trainer, and settings, under which TRL scores each rollout batch before it is trained."""


def digit_reward(completions: list[Any], **_: Any) -> list[float | None]:
    """Eighths of the share of digits, so that sums are exact in float32 and equal rewards give exactly std 0."""
    scores = []
    for completion in completions:
        words = completion[0]["content"].split()
        scores.append(round(8 * sum(word.isdigit() for word in words) / max(len(words), 1)) / 8)
    return scores


def sometimes_unscored(completions: list[Any], **_: Any) -> list[float | None]:
    """As `digit_reward`, but a completion that begins with a letter in a–c cannot be scored."""
    rewards = digit_reward(completions)
    texts = [completion[0]["content"] for completion in completions]
    return [None if text[:1] in {"a", "b", "c"} else reward for text, reward in zip(texts, rewards, strict=True)]


def by_tokens(completion_ids: list[list[int]], **_: Any) -> list[float]:
    """Rewards that differ inside most groups, whatever was written."""
    return [((sum(ids) * 7919) % 8) / 8 for ids in completion_ids]


def in_options(keywords: dict[str, Any]) -> dict[str, Any]:
    """Keywords of `RLVRTrainer` in which fields of its options stand side by side, each put into its option."""
    found, given = {}, dict(keywords)
    for name, kind in {"speed": Speed, "engine": Engine, "evaluation": Evaluation}.items():
        own = {field.name: given.pop(field.name) for field in fields(kind) if field.name in given}
        found |= {name: kind(**own)} if own else {}
    return {**given, **found}


def made(
    trainer_class: type[GRPOTrainer],
    model: Any,
    output_dir: Path,
    *,
    reward: Any = digit_reward,
    rows: Any = PROMPTS,
    strategies: dict[str, Any] | None = None,
    **settings: Any,
) -> Any:
    """A trainer of a few steps on eight prompts; ``settings`` go to GRPOConfig, ``strategies`` to the trainer."""
    torch.set_num_threads(1)
    defaults: dict[str, Any] = {
        "output_dir": str(output_dir),
        "num_generations": 4,
        "per_device_train_batch_size": 8,
        "max_completion_length": 8,
        "learning_rate": 1e-2,
        "max_steps": 3,
        **ON_CPU,
    }
    return trainer_class(
        model=str(model) if isinstance(model, Path) else model,
        reward_funcs=reward,
        args=GRPOConfig(**{**defaults, **settings}),
        train_dataset=Dataset.from_list(rows) if isinstance(rows, list) else rows,
        **in_options(strategies or {}),
    )


def begun(trainer: Any) -> Any:
    """``trainer`` in the state of its first training step."""
    trainer.model.train()
    if trainer.args.gradient_checkpointing:  # as Trainer.train does
        trainer.model.gradient_checkpointing_enable({"use_reentrant": False})
    trainer.current_gradient_accumulation_steps = trainer.args.gradient_accumulation_steps
    return trainer


def train(
    trainer_class: type[GRPOTrainer],
    model: Path,
    output_dir: Path,
    *,
    strategies: dict[str, Any] | None = None,
    peft_config: Any = None,
    resume_from_checkpoint: str | None = None,
    callbacks: list[Any] | None = None,
    **settings: Any,
) -> GRPOTrainer:
    """`made`, and trained."""
    given = {"peft_config": peft_config, "callbacks": callbacks, **(strategies or {})}
    trainer: GRPOTrainer = made(trainer_class, model, output_dir, strategies=given, **settings)
    trainer.train(resume_from_checkpoint=resume_from_checkpoint)
    return trainer


def shown(trainer: Any, see: Callable[[Any, Any], None]) -> Any:
    """``trainer``, which shows each rollout batch and its signals to ``see`` before it is credited."""
    estimate = trainer.parts.advantages.write_advantages

    def seen(rollout: Any, signals: Any, logs: Any) -> Any:
        see(rollout, signals)
        return estimate(rollout, signals, logs)

    trainer.parts.advantages.write_advantages = seen
    return trainer


def logged(trainer: Any, name: str) -> list[float]:
    """What the trainer logged under ``name``, in order."""
    return [line[name] for line in trainer.state.log_history if name in line]


def max_difference(first: Any, second: Any) -> float:
    """Largest absolute difference between the two final policies' weights."""
    pairs = zip(first.model.state_dict().values(), second.model.state_dict().values(), strict=True)
    return max((a.float() - b.float()).abs().max().item() for a, b in pairs)


def moved(trainer: GRPOTrainer, model: Path) -> float:
    """Largest absolute difference between the trainer's policy and the weights it started from."""
    start = AutoModelForCausalLM.from_pretrained(model).to(trainer.model.device)
    return max_difference(trainer, SimpleNamespace(model=start))


def run_on(processes: int, program: str, model: Path, folder: Path, *arguments: str) -> None:
    """Run ``program``, a script given the model, the folder and ``arguments``, on so many processes."""
    script = folder / "program.py"
    script.write_text(program)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    done = subprocess.run(
        [*command, str(script), str(model), str(folder), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "ACCELERATE_TORCH_DEVICE": "cpu"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def ours(model: Path, output_dir: Path, *, strategies: dict[str, Any] | None = None, **settings: Any) -> GRPOTrainer:
    """`train` with `RLVRTrainer`."""
    return train(RLVRTrainer, model, output_dir, strategies=strategies, **settings)
