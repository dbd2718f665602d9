"""How far tokens that a whole group shares are from cancelling, measured in short runs of a policy that ships.

    python -m scripts.research.cancellation --prompts 4 --rollouts 2
    python -m scripts.research.cancellation configs/knights_knaves/tiny_cpu.yaml --rollouts 5

cancellation/shared_prefix is the mean over the optimizer steps of a few rollout batches: advantages × optimizer steps a
batch, with groups kept in one step and shuffled. With --parameters: of the gradient of the parameters, in float32 and
bfloat16. 2 CPU cores, 2 GB.
"""

import argparse
import contextlib
import io
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from evenkeel.errors import Refusal
from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.run.callbacks.progress import samples
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.step.metrics import SharedPrefixMeter
from scripts.program import run

RESIDUAL = "cancellation/shared_prefix"
GROUP_SIZE = 8
ESTIMATORS = (
    ("grpo", "grpo"),
    ("exchangeable", "grpo"),
    ("exchangeable_prefix_tree", "dapo"),
    ("exchangeable_token_class", "grpo"),
)
"""(advantage, loss_type) of each row."""


PRECISIONS = {
    "float32": {"trl.bf16": "false"},
    "bfloat16 autocast": {"trl.bf16": "true"},
    "bfloat16 weights": {"trl.bf16": "true", "model.dtype": "bfloat16"},
}


_NOTHING_SHARED = (
    "No group of the policy of {} shares a token where it has something to teach, so nothing has to cancel. Name a "
    "policy whose responses begin alike, as after a template."
)


class UnmeasurableError(Refusal):
    """Nothing that could cancel, or no way to cut the batch."""


@dataclass(frozen=True)
class Updates:
    """How a rollout batch is trained: optimizer steps in a pass, and the passes."""

    title: str
    steps: int
    schedule: str = "single_pass"


UPDATES = (Updates("1 step", 1), Updates("2 steps", 2), Updates("4 steps", 4), Updates("lopti", 1, "lopti"))


@dataclass(frozen=True)
class SharedPrefixes:
    """Of the newest rollout batch: how many groups have something to teach, and how many tokens each of them shares."""

    live_groups: int
    mean_length: float
    shortest: int


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What this program is asked."""
    command.add_argument("config", nargs="?", type=Path, default=Path("configs/quickstart.yaml"), help="YAML of a run")
    command.add_argument("--prompts", type=int, default=8, help="in a rollout batch; a multiple of 4; default 8")
    command.add_argument("--rollouts", type=int, default=3, help="rollout batches of every cell; default 3")
    command.add_argument("--parameters", action="store_true", help="of the parameters' gradient, by precision, instead")


def measure(options: argparse.Namespace) -> None:
    """Print the table, line by line."""
    table = parameter_table if options.parameters else cancellation_table
    for line in table(options.config, prompts=options.prompts, rollouts=options.rollouts):
        print(line, flush=True)


def parameter_table(config_path: Path, *, prompts: int, rollouts: int) -> Iterator[str]:
    """The lines of a Markdown table: how much of the shared tokens is left in the gradient of the parameters.

    The metric ``cancellation/shared_prefix`` reads what multiplies ``∇log π``, in float32 whatever the precision. Here
    the sum ``Σ_i c_i ∇log π`` over those tokens is taken through the model, and its norm divided by that of
    ``Σ_i |c_i| ∇log π`` over the same tokens and by that of the whole gradient: each the mean over optimizer steps of
    the norms. All three are gradients of the same rollout batches at the same weights: the learning rate is 1e-12.
    """
    _check_batches(prompts, rollouts)
    yield "| advantage | precision | of the shared tokens' own gradient | of the whole gradient |"
    yield "| --- | --- | --- | --- |"
    settings = {"trl.learning_rate": 1e-12, "trl.use_cpu": not torch.cuda.is_available()}
    for advantage, loss_type in ESTIMATORS[:2]:
        cell = _settings(advantage, "step", loss_type, UPDATES[0], prompts, rollouts)
        for name, precision in PRECISIONS.items():
            norms = [
                _gradient_norm(config_path, {**cell, **settings, **precision}, flows)
                for flows in (lambda c, shared: c * shared, lambda c, shared: c.abs() * shared, lambda c, shared: c)
            ]
            if not norms[1]:
                raise UnmeasurableError(_NOTHING_SHARED.format(config_path))
            yield f"| `{advantage}` | {name} | {norms[0] / norms[1]:.1e} | {norms[0] / norms[2]:.1e} |"


def _check_batches(prompts: int, rollouts: int) -> None:
    if prompts < 4 or prompts % 4 or rollouts < 1:
        raise UnmeasurableError(
            f"{rollouts} rollout batches of {prompts} prompts: {prompts} prompts cannot be cut into four optimizer "
            "steps of whole groups, or there is no batch. Write prompts in multiples of 4, and one rollout or more."
        )


def _gradient_norm(config_path: Path, settings: Mapping[str, Any], flows: Callable[[Tensor, Tensor], Tensor]) -> float:
    """The mean norm of the gradient, ``flows`` of (contributions, shared) (B, T) in place of the contributions."""

    class Changed(SharedPrefixMeter):
        def watch(self, logps: Tensor, groups: Tensor, prefix_lengths: Tensor) -> None:
            shared = torch.arange(logps.shape[1], device=logps.device) < prefix_lengths[:, None]
            logps.register_hook(lambda contributions: flows(contributions, shared))

    with short_run(config_path, settings) as trainer:
        trainer.parts.loss.shared_prefixes = Changed()
        trainer.train()
    return fmean(entry["grad_norm"] for entry in trainer.state.log_history if "grad_norm" in entry)


def cancellation_table(config_path: Path, *, prompts: int, rollouts: int) -> Iterator[str]:
    """The lines of a Markdown table of the mean residual over all optimizer steps: groups kept / groups shuffled.

    0: what a group shares cancels in every step. 1: nothing cancels. Every cell starts from the same policy, seed and
    prompts, so that its first rollout batch is the same. A line comes when its runs are done. Where one optimizer step
    holds the whole rollout batch there is nothing to scatter, and one run is made.

    Args:
        prompts: of a rollout batch. A multiple of 4, so that four steps hold whole groups.
        rollouts: rollout batches of every cell.

    Raises:
        UnmeasurableError: prompts is not a multiple of 4, there is no rollout, or the groups share no
            token.
    """
    _check_batches(prompts, rollouts)
    yield f"| advantage | loss | {' | '.join(updates.title for updates in UPDATES)} |"
    yield f"|{' --- |' * (2 + len(UPDATES))}"
    prefixes: list[SharedPrefixes] = []
    for advantage, loss_type in ESTIMATORS:
        cells = []
        for updates in UPDATES:
            measured = []
            for keep_groups in ("step", "off") if updates.steps > 1 else ("step",):
                settings = _settings(advantage, keep_groups, loss_type, updates, prompts, rollouts)
                residual, shared = _measured(config_path, settings)
                measured.append(_written(residual))
                prefixes.append(shared)
            cells.append(" / ".join(measured))
        yield f"| `{advantage}` | `{loss_type}` | {' | '.join(cells)} |"
    live = [shared for shared in prefixes if shared.live_groups] or prefixes
    yield (
        f"\nIn the last rollout batch of each run: {fmean(shared.live_groups for shared in prefixes):.1f} groups of "
        f"{prompts} live, whose responses begin with {fmean(shared.mean_length for shared in live):.1f} tokens in "
        f"common (at least {min(shared.shortest for shared in live)})."
    )


def shared_prefixes(
    completions: Sequence[Sequence[int]], advantages: Sequence[float], group_size: int
) -> SharedPrefixes:
    """What live groups share of their completions (token ids, a group's side by side); live: with an advantage."""
    lengths = []
    for start in range(0, len(completions), group_size):
        if any(advantages[start : start + group_size]):
            columns = zip(*completions[start : start + group_size], strict=False)
            differing = (index for index, column in enumerate(columns) if len(set(column)) > 1)
            shortest = min(len(ids) for ids in completions[start : start + group_size])
            lengths.append(next(differing, shortest))
    return SharedPrefixes(len(lengths), fmean(lengths) if lengths else 0.0, min(lengths, default=0))


def _settings(
    advantage: str, keep_groups: str, loss_type: str, updates: Updates, prompts: int, rollouts: int
) -> dict[str, Any]:
    passes = build_strategies(update_schedule=updates.schedule).schedule.num_passes
    sequences = prompts * GROUP_SIZE // updates.steps
    return {
        "algorithm.advantage": advantage,
        "algorithm.keep_groups": keep_groups,
        "algorithm.update_schedule": updates.schedule,
        "algorithm.prompts_per_rollout": prompts,
        "algorithm.sequences_per_update": sequences,
        "trl.num_generations": GROUP_SIZE,
        "trl.per_device_train_batch_size": sequences,
        "trl.loss_type": loss_type,
        "trl.max_steps": rollouts * updates.steps * passes,
        "evaluation.before": "false",
    }


def _measured(config_path: Path, settings: Mapping[str, Any]) -> tuple[float, SharedPrefixes]:
    """The mean residual over the optimizer steps of one short run, and what its groups share at the end."""
    with short_run(config_path, settings) as trainer:
        trainer.train()
    residuals = [entry[RESIDUAL] for entry in trainer.state.log_history if RESIDUAL in entry]
    if not residuals:
        raise UnmeasurableError(_NOTHING_SHARED.format(config_path))
    rows = samples(trainer._logs, settings["algorithm.prompts_per_rollout"] * GROUP_SIZE)
    ids = [trainer._tokenizer(sample["completion"], add_special_tokens=False)["input_ids"] for sample in rows]
    return fmean(residuals), shared_prefixes(ids, [sample["advantage"] for sample in rows], GROUP_SIZE)


@contextmanager
def short_run(config_path: Path, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The trainer of a run file with ``settings`` (dotted overrides) in its place; what is printed inside is not."""
    with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(io.StringIO()):
        fixed = {"trl.save_strategy": "no", "logging.report_to": "none", "logging.rollouts": "off"}
        overrides = [f"{key}={value}" for key, value in {**fixed, **settings, "output_dir": directory}.items()]
        yield Experiment.of_file(config_path, overrides).trainer


def _written(value: float) -> str:
    return f"{value:.2f}" if value >= 0.005 else f"{value:.0e}"


if __name__ == "__main__":
    sys.exit(run(__doc__, add_arguments, measure))
