"""Sources of a bench's rollouts: a run's directory, or batches sampled from a configuration's policy."""

import contextlib
import io
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from evenkeel.trainer.lab.gradients.contributions import Recipe
from evenkeel.trainer.lab.gradients.replay import Row
from evenkeel.trainer.run.callbacks.records import Rollouts
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.record.rollouts import RecordedRollouts
from evenkeel.trainer.run.schedule import optimizer_steps_per_block

CLIPPED = ("grpo", "bnpo", "dapo", "dr_grpo")
"""Losses that clip the ratio of each token by itself."""


def recipe_of(experiment: Experiment, learning_rate: float | None = None) -> Recipe:
    """The settings of a configuration that determine the gradients of its rollouts, at its learning rate or another."""
    args = experiment.args
    weights = {reward.label: reward.weight for reward in experiment.config.rewards}
    high = args.epsilon if args.epsilon_high is None else args.epsilon_high
    by_token = args.importance_sampling_level == "token"
    is_clipped = by_token and args.loss_type in CLIPPED and args.delta is None
    return Recipe(
        args.num_generations,
        args.temperature,
        weights,
        max(args.max_steps, 1),
        args.loss_type,
        args.max_completion_length,
        learning_rate or args.learning_rate,
        (1 - args.epsilon, 1 + high) if is_clipped else None,
    )


def recorded_batches(run: Path, most: int) -> Iterator[list[Row]]:
    """The first ``most`` batches that a run recorded, those nearest to the policy that it started from.

    Raises:
        Refusal: there are none.
    """
    recorded = RecordedRollouts(run)
    for table in recorded.batches(numbers=list(recorded.files)[:most]):
        yield table.to_pylist()


def sampled_batches(config_path: Path, overrides: Sequence[str], batches: int) -> Iterator[list[Row]]:
    """Sample rollout batches of one policy: the configuration's run with learning rate 0, in a temporary directory."""
    with tempfile.TemporaryDirectory() as directory:
        fixed = {
            "trl.save_strategy": "no",
            "evaluation.before": "false",
            "logging.report_to": "none",
            "logging.rollouts": "all",
            "output_dir": directory,
        }
        fixed_too = [f"{key}={value}" for key, value in fixed.items()]
        experiment = Experiment.of_file(config_path, [*overrides, *fixed_too])
        args = experiment.args
        # a run file must not say 0
        args.max_steps, args.learning_rate = batches * optimizer_steps_per_block(args), 0.0
        _ = experiment.rows  # loaded while messages are still printed
        with contextlib.redirect_stdout(io.StringIO()):
            trainer = experiment.trainer
            trainer.add_callback(Rollouts(trainer, Path(directory), experiment.config.logging))
            trainer.train()
        yield from recorded_batches(Path(directory), batches)
